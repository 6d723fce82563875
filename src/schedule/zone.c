#include "schedule/zone.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/mem.h"

#define NAME_MAX_BYTES 64
#define DAY_S 86400

struct zone {
    char name[NAME_MAX_BYTES + 1];
    GTimeZone *tz;
    struct stretch last; /* the one that was asked for last */
};

/* Names of the database only. GLib also takes offsets, rules, and paths out of the database. */
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

/* The folder has other files, too: GLib complains of these on stderr. */
static bool is_in_database(const char *name)
{
    CLEANUP_FREE char *path = mem_printf("%s/%s", database(), name);
    char magic[4] = "";
    struct stat st;
    FILE *f;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || (f = fopen(path, "re")) == NULL)
        return false;
    if (fread(magic, 1, sizeof(magic), f) != sizeof(magic))
        magic[0] = '\0';
    (void)fclose(f);
    return memcmp(magic, "TZif", sizeof(magic)) == 0;
}

struct zone *zone_new(const char *name, struct err *err)
{
    struct zone *z;
    GTimeZone *tz = NULL;

    if (is_name(name) && (strcmp(name, "UTC") == 0 || is_in_database(name)))
        tz = g_time_zone_new_identifier(name);
    if (tz == NULL) {
        err_fill(err, ERR_FORMAT,
                 "there is no time zone '%.64s' in %.100s: write one as Europe/Berlin, or UTC",
                 name, database());
        return NULL;
    }
    z = mem_new(sizeof(*z));
    (void)snprintf(z->name, sizeof(z->name), "%s", name);
    z->tz = tz;
    return z;
}

void zone_free(struct zone *z)
{
    if (z == NULL)
        return;
    g_time_zone_unref(z->tz);
    free(z);
}

const char *zone_name(const struct zone *z)
{
    return z->name;
}

static int interval_at(struct zone *z, int64_t utc_s)
{
    return g_time_zone_find_interval(z->tz, G_TIME_TYPE_UNIVERSAL, utc_s);
}

/* The last second on the way from utc_s to limit_s, before or behind it, that is in the interval of
 * utc_s. Intervals are numbered in their order, so bisection finds it. */
static int64_t last_within(struct zone *z, int64_t utc_s, int64_t limit_s)
{
    int at = interval_at(z, utc_s);
    int64_t inside = utc_s, outside = limit_s;

    if (interval_at(z, limit_s) == at)
        return limit_s;
    while (outside - inside > 1 || inside - outside > 1) {
        int64_t middle = inside + (outside - inside) / 2;

        if (interval_at(z, middle) == at)
            inside = middle;
        else
            outside = middle;
    }
    return inside;
}

struct stretch zone_stretch(struct zone *z, int64_t utc_s)
{
    struct stretch *s = &z->last;

    if (utc_s < ZONE_FIRST_S)
        utc_s = ZONE_FIRST_S;
    if (utc_s >= ZONE_LAST_S)
        utc_s = ZONE_LAST_S - 1;
    if (utc_s < s->from_s || utc_s >= s->until_s) {
        s->from_s = last_within(z, utc_s, ZONE_FIRST_S);
        s->until_s = last_within(z, utc_s, ZONE_LAST_S - 1) + 1;
        s->offset_s = g_time_zone_get_offset(z->tz, interval_at(z, utc_s));
    }
    return *s;
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
