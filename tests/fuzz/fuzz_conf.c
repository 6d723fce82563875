/* A configuration file: if it is accepted and printed, the printed file is accepted, too, and
 * equal. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/conf_errors.h"
#include "conf/yaml.h"
#include "fuzz.h"

/* Load from a file, as the daemon does. */
static struct conf *load(const void *p, size_t n, struct err *err)
{
    CLEANUP_CLOSE int fd = memfd_create("conf", MFD_CLOEXEC);
    CLEANUP_FREE char *path = mem_printf("/proc/self/fd/%d", fd);

    FUZZ_MUST(fd >= 0 && write(fd, p, n) == (ssize_t)n && fchmod(fd, 0600) == 0);
    return conf_load(path, NULL, err);
}

/* A file that is refused has errors, and each has a text. */
static void find_errors(const void *p, size_t n)
{
    CLEANUP_CLOSE int fd = memfd_create("conf", MFD_CLOEXEC);
    CLEANUP_FREE char *path = mem_printf("/proc/self/fd/%d", fd);
    struct conf_errors errors = {.n = 0};

    FUZZ_MUST(fd >= 0 && write(fd, p, n) == (ssize_t)n && fchmod(fd, 0600) == 0);
    FUZZ_MUST(conf_find_errors(path, NULL, &errors) < 0 && errors.at[0].text[0] != '\0');
    conf_errors_done(&errors);
}

int fuzz_conf(const uint8_t *data, size_t n)
{
    CLEANUP_BUF struct buf once = BUF_INIT, twice = BUF_INIT;
    struct err err = ERR_INIT;
    struct conf *conf = load(data, n, &err);
    struct conf *again;

    if (conf == NULL) {
        FUZZ_MUST(err.code == ERR_CONFIG && err.text[0] != '\0');
        find_errors(data, n);
        return 0;
    }
    conf_print(conf, &once);
    again = load(once.data, once.len, &err);
    if (again == NULL)
        (void)fprintf(stderr, "%s\n%s\n", err.text, buf_str(&once));
    FUZZ_MUST(again != NULL);
    conf_print(again, &twice);
    FUZZ_MUST(strcmp(buf_str(&once), buf_str(&twice)) == 0);
    conf_free(again);
    conf_free(conf);
    return 0;
}
