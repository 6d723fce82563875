#include "base/access.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static void put_user(uid_t uid, struct buf *out)
{
    char room[4096];
    struct passwd entry, *found = NULL;

    if (getpwuid_r(uid, &entry, room, sizeof(room), &found) == 0 && found != NULL)
        buf_puts(out, found->pw_name);
    else
        buf_printf(out, "%lu", (unsigned long)uid);
}

static void put_group(gid_t gid, struct buf *out)
{
    char room[4096];
    struct group entry, *found = NULL;

    if (getgrgid_r(gid, &entry, room, sizeof(room), &found) == 0 && found != NULL)
        buf_puts(out, found->gr_name);
    else
        buf_printf(out, "%lu", (unsigned long)gid);
}

/* Does the mode of the file let its group have all of these? */
static bool group_may(const struct stat *st, int mode)
{
    mode_t wanted = ((mode & R_OK) != 0 ? S_IRGRP : 0U) | ((mode & W_OK) != 0 ? S_IWGRP : 0U) |
                    ((mode & X_OK) != 0 ? S_IXGRP : 0U);

    return (st->st_mode & wanted) == wanted;
}

/* Nobody joins the group of root for this. */
static void put_cure(const char *path, int mode, struct buf *out)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return;
    if (!group_may(&st, mode) || st.st_gid == 0) {
        buf_puts(out, "only user ");
        put_user(st.st_uid, out);
        buf_printf(out, " may open %s", path);
        return;
    }
    buf_puts(out, "members of group ");
    put_group(st.st_gid, out);
    buf_puts(out, " may: usermod -aG ");
    put_group(st.st_gid, out);
    buf_puts(out, " ");
    put_user(geteuid(), out);
    buf_puts(out, ", then log in again");
}

static bool is_denied(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0 && errno == EACCES;
}

void access_cure(const char *path, int mode, struct buf *out)
{
    char folder[4096];

    for (const char *at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
        size_t n = (size_t)(at - path);

        if (n == 0 || n >= sizeof(folder))
            continue;
        memcpy(folder, path, n);
        folder[n] = '\0';
        if (is_denied(folder, X_OK)) {
            put_cure(folder, X_OK, out);
            return;
        }
    }
    if (is_denied(path, mode))
        put_cure(path, mode, out);
}
