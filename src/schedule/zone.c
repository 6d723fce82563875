#include "schedule/zone.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "schedule/tzif.h"

#define NAME_MAX_BYTES 64
#define DAY_S 86400

struct zone {
    char name[NAME_MAX_BYTES + 1];
    struct tzif changes;
};

/* Names of the database only: no path leads out of it. */
static bool is_name(const char *s)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/";
    size_t n = strlen(s);

    return n > 0 && n <= NAME_MAX_BYTES && strspn(s, plain) == n && s[0] != '/' && s[0] != '+' &&
           s[0] != '-' && s[n - 1] != '/' && strstr(s, "//") == NULL;
}

static const char *database(void)
{
    const char *dir = getenv("TZDIR");

    return dir != NULL && dir[0] != '\0' ? dir : "/usr/share/zoneinfo";
}

/* Read, not mapped: an update of tzdata may cut the file at any time. -1: no such file, or it
 * cannot be read. */
static ssize_t read_file(const char *path, uint8_t *buf, size_t n)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t got;
    size_t have = 0;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    while (have < n && (got = read(fd, buf + have, n - have)) != 0) {
        if (got < 0 && errno != EINTR)
            return -1;
        have += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)have;
}

/* The name comes from outside. */
static int no_zone(const char *name, struct err *err)
{
    CLEANUP_BUF struct buf shown = BUF_INIT;

    text_escape(&shown, name, strlen(name));
    text_cut(&shown, NAME_MAX_BYTES);
    return err_set(err, ERR_FORMAT,
                   "there is no time zone '%s' in %.100s: write one as Europe/Berlin, or UTC",
                   buf_str(&shown), database());
}

static int read_zone(const char *name, struct tzif *ret, struct err *err)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", database(), name);
    CLEANUP_FREE uint8_t *buf = mem_new(TZIF_MAX_BYTES + 1);
    ssize_t n = is_name(name) ? read_file(path, buf, TZIF_MAX_BYTES + 1) : -1;

    /* The folder has other files, too. An empty one was to be a zone. */
    if (n < 0 || (n >= 4 && memcmp(buf, "TZif", 4) != 0 && memcmp(buf, "\0\0\0\0", 4) != 0))
        return no_zone(name, err);
    if (n > TZIF_MAX_BYTES || tzif_read(buf, (size_t)n, ZONE_FIRST_S, ZONE_LAST_S, ret) < 0)
        return err_set(err, ERR_FORMAT,
                       "the time zone file %.200s is damaged (or counts leap seconds): install "
                       "tzdata again",
                       path);
    return 0;
}

/* UTC needs no database. */
struct zone *zone_new(const char *name, struct err *err)
{
    struct zone *z;
    struct tzif changes;

    if (strcmp(name, "UTC") == 0)
        tzif_utc(ZONE_FIRST_S, &changes);
    else if (read_zone(name, &changes, err) < 0)
        return NULL;
    z = mem_new(sizeof(*z));
    (void)snprintf(z->name, sizeof(z->name), "%s", name);
    z->changes = changes;
    return z;
}

void zone_free(struct zone *z)
{
    if (z == NULL)
        return;
    tzif_done(&z->changes);
    free(z);
}

const char *zone_name(const struct zone *z)
{
    return z->name;
}

struct stretch zone_stretch(struct zone *z, int64_t utc_s)
{
    const struct tzif *t = &z->changes;
    size_t at = 0, behind = t->n;

    while (behind - at > 1) {
        size_t middle = at + (behind - at) / 2;

        if (t->of[middle].from_s <= utc_s)
            at = middle;
        else
            behind = middle;
    }
    return (struct stretch){.from_s = t->of[at].from_s,
                            .until_s = behind < t->n ? t->of[behind].from_s : ZONE_LAST_S,
                            .offset_s = t->of[at].offset_s};
}

static int64_t day_of(int64_t local_s)
{
    return (local_s - (local_s % DAY_S + DAY_S) % DAY_S) / DAY_S;
}

int64_t zone_moved_s(struct zone *z, int64_t utc_s)
{
    struct stretch here = zone_stretch(z, utc_s);
    int64_t day = day_of(utc_s + here.offset_s);
    int64_t before = zone_stretch(z, here.from_s - 1).offset_s;
    int64_t after = zone_stretch(z, here.until_s).offset_s;

    if (day_of(here.from_s + here.offset_s) == day || day_of(here.from_s + before) == day)
        return here.offset_s - before;
    if (day_of(here.until_s + after) == day || day_of(here.until_s + here.offset_s) == day)
        return after - here.offset_s;
    return 0;
}

int64_t zone_day(struct zone *z, int64_t utc_s)
{
    time_t local = (time_t)(utc_s + zone_stretch(z, utc_s).offset_s);
    struct tm tm;

    (void)gmtime_r(&local, &tm);
    return (tm.tm_year + INT64_C(1900)) * 1000 + tm.tm_yday + 1;
}

int64_t zone_next_day_s(struct zone *z, int64_t utc_s)
{
    int64_t local_s = (day_of(utc_s + zone_stretch(z, utc_s).offset_s) + 1) * DAY_S;
    int64_t guess_s = local_s - zone_stretch(z, utc_s).offset_s;

    return local_s - zone_stretch(z, guess_s).offset_s;
}

void zone_database_version(char ret[16])
{
    CLEANUP_FREE char *path = mem_printf("%s/tzdata.zi", database());
    FILE *f = fopen(path, "re");

    ret[0] = '\0';
    if (f == NULL)
        return;
    if (fscanf(f, "# version %15[0-9a-zA-Z]", ret) != 1)
        ret[0] = '\0';
    (void)fclose(f);
}
