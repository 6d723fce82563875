/*
 * Settings from the environment: each line is a variable. They are applied to a configuration file
 * with two queues, so that names of queues have a meaning.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "fuzz.h"

#define VARS_MAX 64

static const char file[] = "queues:\n  mail: {}\n  mail_big: { handler: [/bin/true] }\n";

/* Make an environ of the lines of text. Changes text, and env points into it. */
static void split(char *text, char *env[VARS_MAX + 1])
{
    char *save = NULL;
    size_t n = 0;

    for (char *l = strtok_r(text, "\n", &save); l != NULL && n < VARS_MAX;
         l = strtok_r(NULL, "\n", &save))
        env[n++] = l;
    env[n] = NULL;
}

int fuzz_env(const uint8_t *data, size_t n)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    CLEANUP_CLOSE int fd = memfd_create("conf", MFD_CLOEXEC);
    CLEANUP_FREE char *path = mem_printf("/proc/self/fd/%d", fd);
    CLEANUP_FREE char *text = mem_dup(data, n);
    char *env[VARS_MAX + 1];
    struct err err = ERR_INIT;
    struct conf *conf;

    FUZZ_MUST(fd >= 0 && write(fd, file, sizeof(file) - 1) == (ssize_t)sizeof(file) - 1);
    FUZZ_MUST(fchmod(fd, 0600) == 0);
    split(text, env);
    conf = conf_load(path, env, &err);
    if (conf == NULL) {
        FUZZ_MUST(err.code == ERR_CONFIG && err.text[0] != '\0');
        return 0;
    }
    conf_print(conf, &out);
    FUZZ_MUST(out.len > 0);
    conf_free(conf);
    return 0;
}
