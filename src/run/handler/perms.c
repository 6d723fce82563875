#include "run/handler/perms.h"

#include <sys/stat.h>
#include <unistd.h>

#include "run/handler/path_walk.h"
#include "run/handler/program.h"

static int check_entry(void *arg, const char *path, const struct stat *st, struct err *err)
{
    const char *shown = program_shown(path);

    (void)arg;
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return err_set(err, ERR_CONFIG, "%s belongs to uid %d, not to root or uid %d: chown %d %s",
                       shown, (int)st->st_uid, (int)geteuid(), (int)geteuid(), shown);
    if (S_ISLNK(st->st_mode) || (st->st_mode & 022) == 0)
        return 0;
    /* In root's sticky folder only root and an entry's owner can replace it; it is checked next. */
    if (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0 && st->st_uid == 0)
        return 0;
    return err_set(err, ERR_CONFIG, "%s can be written by others (mode %04o): chmod go-w %s", shown,
                   (unsigned)(st->st_mode & 07777), shown);
}

int perms_check(const char *path, struct err *err)
{
    const struct path_visitor visitor = {.entry = check_entry};
    struct stat st;

    if (stat("/", &st) == 0 && check_entry(NULL, "/", &st, err) != 0)
        return -1;
    return path_walk(path, &visitor, err);
}
