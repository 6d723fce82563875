#include "usage.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../support/laterd.h"
#include "base/cleanup.h"
#include "base/mem.h"

static int entries(pid_t pid, const char *what)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/%s", (int)pid, what);
    DIR *dir = opendir(path);
    int n = 0;

    if (dir == NULL)
        fail_msg("no process %d", (int)pid);
    while (readdir(dir) != NULL)
        n++;
    (void)closedir(dir);
    return n - 2; /* . and .. */
}

int usage_fds(pid_t pid)
{
    return entries(pid, "fd");
}

int usage_threads(pid_t pid)
{
    return entries(pid, "task");
}

int64_t usage_kib(pid_t pid, const char *name)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/status", (int)pid);
    CLEANUP_BUF struct buf all = BUF_INIT;
    const char *at;

    test_read(path, &all);
    at = strstr(buf_str(&all), name);
    if (at == NULL)
        fail_msg("no %s of process %d", name, (int)pid);
    return strtoll(at + strlen(name) + 1, NULL, 10);
}

/* Fields of /proc/PID/stat after the name, which may hold any character: the state, then numbers
 * from field[1] (the parent) on; field[0] is not set. */
static bool read_stat(pid_t pid, char *state, long long field[20])
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/stat", (int)pid);
    CLEANUP_BUF struct buf all = BUF_INIT;
    char *at, *end;

    test_read(path, &all);
    at = all.len > 0 ? strrchr(all.data, ')') : NULL;
    if (at == NULL)
        return false;
    *state = at[2];
    end = at + 3;
    for (int i = 1; i < 20; i++)
        field[i] = strtoll(end, &end, 10);
    return true;
}

int64_t usage_cpu_ms(pid_t pid)
{
    long long field[20];
    char state;

    if (!read_stat(pid, &state, field))
        fail_msg("no process %d", (int)pid);
    return (field[11] + field[12]) * 1000 / sysconf(_SC_CLK_TCK);
}

static bool is_guard(pid_t pid)
{
    CLEANUP_FREE char *path = mem_printf("/proc/%d/comm", (int)pid);
    CLEANUP_BUF struct buf name = BUF_INIT;

    test_read(path, &name);
    return strcmp(buf_str(&name), "later-guard\n") == 0;
}

int usage_children(pid_t pid, bool zombies_only)
{
    DIR *proc = opendir("/proc");
    int n = 0;

    assert_non_null(proc);
    for (struct dirent *e = readdir(proc); e != NULL; e = readdir(proc)) {
        pid_t child = (pid_t)strtol(e->d_name, NULL, 10);
        long long field[20];
        char state;

        if (child > 0 && read_stat(child, &state, field) && field[1] == pid && !is_guard(child))
            n += !zombies_only || state == 'Z';
    }
    (void)closedir(proc);
    return n;
}
