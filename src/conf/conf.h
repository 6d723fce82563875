/*
 * The configuration: defaults, then the file, then the environment; checked whole before use.
 *
 * Rows live in conf.def. The functions are in conf_load.c, conf_gates.c, conf_schedule.c,
 * conf_print.c and conf_reload.c: this header is under all of them. A struct conf is immutable
 * after loading; the daemon swaps the whole object on reload. Units: durations in ms, sizes in
 * bytes. Main thread only.
 */
#ifndef LATER_CONF_CONF_H
#define LATER_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/shard.h"

#define CONF_NEVER INT64_MAX /* a DUR_OR_NONE written `none` */
#define CONF_INTS_MAX 16
#define CONF_LINE_ENV (-1)
#define CONF_LIMITS_MAX 1000 /* as many as one namespace takes */
#define CONF_SCHEDULES_MAX 10000

/* The words of the CHOICE rows, in the order of their words in conf_row.c. */
enum conf_permissions { CONF_PERMISSIONS_STRICT, CONF_PERMISSIONS_WARN, CONF_PERMISSIONS_OFF };
enum conf_adopt_unit { CONF_ADOPT_NONE, CONF_ADOPT_S, CONF_ADOPT_MS };
enum conf_mode { CONF_MODE_EXEC, CONF_MODE_STREAM, CONF_MODE_PLUGIN };
enum conf_on_lost { CONF_ON_LOST_KEEP, CONF_ON_LOST_KILL };
/* FUNNEL is an alias of GCRA that loading replaces. */
enum conf_overlap {
    CONF_OVERLAP_ALLOW,
    CONF_OVERLAP_SKIP,
    CONF_OVERLAP_QUEUE,
    CONF_OVERLAP_REPLACE
};
enum conf_algorithm {
    CONF_ALGORITHM_GCRA,
    CONF_ALGORITHM_SLIDING,
    CONF_ALGORITHM_FIXED,
    CONF_ALGORITHM_FUNNEL
};
/* log_level: 0 error to 4 debug; CONF_LOG_LEVEL converts it to a level of base/log.h. */
#define CONF_LOG_LEVEL(choice) ((int)(choice) + 3)
#define CONF_LOG_JSON 1 /* log_format */

struct conf_strs {
    char **at; /* NULL-ended (so it serves as an argv); NULL while empty */
    size_t n;
};

struct conf_ints {
    int at[CONF_INTS_MAX];
    size_t n;
};

struct conf_rate {
    int64_t n, per_ms;
};

/* The C types of the row types. CHOICE is the index into the row's words (conf_row.c). */
typedef char *conf_STR;
typedef int64_t conf_DUR;
typedef int64_t conf_DUR_OR_NONE; /* CONF_NEVER for none */
typedef int64_t conf_SIZE;
typedef int64_t conf_INT;
typedef int64_t conf_PCT;    /* whole per cent */
typedef int64_t conf_FACTOR; /* thousandths: 2 is 2000, 1.5 is 1500 */
typedef int64_t conf_CHOICE;
typedef struct conf_rate conf_RATE;
typedef struct conf_strs conf_STRS;
typedef struct conf_strs conf_PAIRS; /* "NAME=value" each */
typedef struct conf_ints conf_INTS;

/* How many rows each scope has. */
enum {
    CONF_TOP_ROWS = 0
#define TOP(...) +1
#include "conf/conf.def"
    ,
    CONF_DEFAULTS_ROWS = 0 /* the first rows of conf_queue_rows, also allowed under defaults: */
#define QUEUE(...) +1
#include "conf/conf.def"
    ,
    CONF_QUEUE_ROWS = CONF_DEFAULTS_ROWS
#define OWN(...) +1
#include "conf/conf.def"
    ,
    CONF_LIMIT_ROWS = 0
#define LIMIT(...) +1
#include "conf/conf.def"
    ,
    CONF_SCHEDULE_ROWS = 0
#define SCHEDULE(...) +1
#include "conf/conf.def"
};

/* The settings of one queue: `defaults:` overlaid by the queue's own mapping. */
struct conf_queue {
    char name[65];              /* "" for the defaults */
    int lines[CONF_QUEUE_ROWS]; /* in the file; 0: built-in, CONF_LINE_ENV: the environment */
#define QUEUE(name, path, type, def, min, max, prose) conf_##type name;
#define OWN(name, path, type, def, min, max, prose) conf_##type name; /* "" where there is none */
#include "conf/conf.def"
};

/* A gate's definition: a semaphore or a rate; the fields of the other kind have no meaning. */
struct conf_limit {
    char *name; /* may hold {key} once */
    bool is_rate;
#define LIMIT(name, path, type, def, min, max, prose) conf_##type name;
#include "conf/conf.def"
};

/* What adds a job again and again. */
struct conf_schedule {
    char *name;
    bool is_given[CONF_SCHEDULE_ROWS]; /* by row: it was written; the others do not count */
#define SCHEDULE(name, path, type, def, min, max, prose) conf_##type name;
#include "conf/conf.def"
};

struct conf {
#define TOP(name, path, type, def, min, max, reload, prose) conf_##type name;
#include "conf/conf.def"
    struct conf_queue defaults;
    struct conf_queue *queues; /* that the file names, sorted by name */
    size_t nqueues;
    struct conf_limit *limits; /* sorted by name */
    size_t nlimits;
    struct conf_schedule *schedules; /* sorted by name */
    size_t nschedules;
    bool has_schedules; /* the file has the section; without it, it says nothing of schedules */
    char *path;         /* the file read, or NULL: none */
    int lines[CONF_TOP_ROWS];  /* as in struct conf_queue */
    char root[SHARD_ROOT_MAX]; /* the text between the braces of all keys: namespace, or
                                  NAMESPACE.SHARD */
};

/*
 * Load. path NULL: no file. env is a list like environ: LATERD_<KEY>, LATERD_DEFAULTS_<KEY>, and
 * for queues and limits that the file names LATERD_QUEUES_<NAME>_<KEY> and
 * LATERD_LIMITS_<NAME>_<KEY>. Other LATERD_ names are refused, except the daemon's own
 * LATERD_CONFIG. Returns the conf (free with conf_free) or NULL with code CONFIG (bad content, with
 * file:line and, for an unknown word, a suggestion), INPUT (no such file), DENIED (unreadable, or
 * others could write it) or SYSTEM.
 */
struct conf *conf_load(const char *path, char *const *env, struct err *err);
/*
 * What a command needs to reach the server that the daemon uses: as conf_load, but if the file or
 * the environment is wrong elsewhere, only redis and what begins with redis_ (redis_timeout as it
 * is without a setting, if it is wrong), namespace and state_dir are read, and *warning says what
 * is wrong. NULL if these are wrong, too, or do not name a server.
 */
struct conf *conf_load_address(const char *path, char *const *env, struct err *warning,
                               struct err *err);
void conf_free(struct conf *conf);

struct conf_errors;
/*
 * Load as conf_load does, and go on after an error: ret, which is empty, gets all of them, sorted.
 * A file that is no YAML has one; of settings of a queue that do not go together the first is told.
 * -1 if there are any.
 */
int conf_find_errors(const char *path, char *const *env, struct conf_errors *ret);

/*
 * A loaded value turned out to be wrong: put where it was written before the text of *err. path is
 * that of its row; q: its queue, or &conf->defaults; NULL: a setting of the daemon. Returns -1.
 */
int conf_blame(const struct conf *conf, const struct conf_queue *q, const char *path,
               struct err *err);

/* The settings of a queue: its own mapping or the defaults. Never NULL. */
const struct conf_queue *conf_queue(const struct conf *conf, const char *queue);

/* The definition of this name (with its {key}, if it has one) in the file, or NULL. */
const struct conf_limit *conf_limit(const struct conf *conf, const char *name);

/*
 * Append them as Redis stores them. A limit: "semaphore N keep|kill" or "rate ALGORITHM N PER_MS
 * BURST". The gates that a queue has: "lock=NAME sem=NAME rate=NAME",
 * of a fair one behind "fair=1 w=WEIGHT:KEY ...".
 */
void conf_limit_text(const struct conf_limit *limit, struct buf *out);
void conf_queue_gates(const struct conf_queue *queue, struct buf *out);

/* Does the file say of which topics the queue gets copies? `topics: []` says: of none. */
bool conf_queue_says_topics(const struct conf_queue *queue);

/* The words of later_schedule_set behind R: NAME cron EXPRESSION|every D [name value]... PAYLOAD.
 * NULL-ended; free it with mem_free_list. */
char **conf_schedule_words(const struct conf_schedule *schedule, size_t *ret_n);

/* Append what is in force as a YAML file with the prose of each row. Loading it gives the same. */
void conf_print(const struct conf *conf, struct buf *out);

#define CONF_NEEDS_RESTART "only a restart applies: " /* a daemon tells it with these names */

/*
 * Append the names of rows that differ and that only a restart applies, as "redis, concurrency";
 * nothing when there are none.
 */
void conf_needs_restart(const struct conf *was, const struct conf *is, struct buf *out);

/*
 * Call it before `is` replaces `was`: swaps the values that only a restart applies, so that `is`
 * says what is in force. `was` is then good for conf_free only.
 */
void conf_keep_fixed(struct conf *was, struct conf *is);

#endif
