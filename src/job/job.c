#include "job/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define HEADER_MAX 2048

static int copy_word(char *to, const char *from)
{
    size_t n = strlen(from);

    if (n == 0 || n > JOB_WORD_MAX)
        return -1;
    memcpy(to, from, n + 1);
    return 0;
}

/* -1: it is no digit */
static int hex_value(char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

int job_decode_reason(const char *p, size_t n, char out[JOB_WORD_MAX + 1])
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        int high = 0, low = (unsigned char)p[i];

        if (p[i] == '%') {
            high = i + 2 < n ? hex_value(p[i + 1]) : -1;
            low = i + 2 < n ? hex_value(p[i + 2]) : -1;
            i += 2;
        }
        if (high < 0 || low < 0 || len == JOB_WORD_MAX)
            return -1;
        out[len++] = (char)(16 * high + low);
    }
    out[len] = '\0';
    return 0;
}

static int copy_parent(struct job *job, const char *id)
{
    if (!job_is_id(id, strlen(id)))
        return -1;
    memcpy(job->parent, id, sizeof(job->parent));
    return 0;
}

static int copy_batch(struct job *job, const char *name, size_t n)
{
    if (n == 0 || n > JOB_BATCH_MAX)
        return -1;
    memcpy(job->batch, name, n);
    job->batch[n] = '\0';
    return 0;
}

/* A name that few jobs have. */
static int keep_name(char **where, const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n > JOB_NAME_MAX || *where != NULL)
        return -1;
    *where = mem_dup(name, n);
    return 0;
}

/* NAME,total,done,dead,cancelled */
static int read_callback(struct job *job, const char *value)
{
    struct batch_counts *c = &job->counts;
    int64_t *const at[] = {&c->total, &c->done, &c->dead, &c->cancelled};
    size_t n = strcspn(value, ",");

    if (copy_batch(job, value, n) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        char number[24];

        value += n;
        if (*value++ != ',')
            return -1;
        n = strcspn(value, ",");
        if (n >= sizeof(number))
            return -1;
        memcpy(number, value, n);
        number[n] = '\0';
        if (text_parse_int(number, 0, INT64_C(9007199254740991), at[i]) < 0)
            return -1;
    }
    job->is_callback = true;
    return value[n] == '\0' ? 0 : -1;
}

/* Read one name=value. 0 also for names of a newer version and names only the library reads. */
static int read_field(struct job *job, char name, const char *value)
{
    switch (name) {
    case 'a':
        return text_parse_int(value, 1, 1000000, &job->attempts_max);
    case 't':
        return text_parse_int(value, 1, INT64_C(3155760000000), &job->timeout_ms);
    case 'k':
        return text_parse_int(value, 0, INT64_C(3155760000000), &job->keep_ms);
    case 'K':
        return copy_word(job->key, value);
    case 'T':
        return copy_word(job->trace, value);
    case 'n':
        job->has_next = true;
        return 0;
    case 'p':
        return copy_parent(job, value);
    case 'm':
        return job_decode_reason(value, strlen(value), job->parent_reason);
    case 'b':
        return copy_batch(job, value, strlen(value));
    case 'B':
        return read_callback(job, value);
    case 'S':
        return keep_name(&job->schedule, value);
    case 'O':
        return text_parse_int(value, 0, INT64_C(100000000000000), &job->occurrence_ms);
    case 'P':
        return keep_name(&job->topic, value);
    default:
        return 0;
    }
}

static int read_fields(struct job *job, char *rest)
{
    char *save = NULL;

    for (char *f = strtok_r(rest, " ", &save); f != NULL; f = strtok_r(NULL, " ", &save)) {
        if (f[0] == '\0' || f[1] != '=' || read_field(job, f[0], f + 2) < 0)
            return -1;
    }
    return 0;
}

/* "<flag><queue>[ <priority>][ fields]" without its LF. */
static int read_header(struct job *job, char *h)
{
    size_t queue_len = strcspn(h + 1, " ");
    char *rest = h + 1 + queue_len;

    if ((h[0] != '-' && h[0] != '+') || !text_is_queue_name(h + 1, queue_len))
        return -1;
    job->priority = JOB_PRIORITY;
    if (rest[0] == ' ' && rest[1] >= '0' && rest[1] <= '9' && (rest[2] == ' ' || rest[2] == '\0')) {
        job->priority = rest[1] - '0';
        rest += 2;
    }
    if (rest[0] == ' ' && rest[1] == '\0')
        return -1;
    job->is_big = h[0] == '+';
    memcpy(job->queue, h + 1, queue_len);
    job->queue[queue_len] = '\0';
    return read_fields(job, rest);
}

int job_parse(struct job *job, const char *record, size_t n, struct err *err)
{
    const char *lf = memchr(record, '\n', n < HEADER_MAX ? n : HEADER_MAX);
    char header[HEADER_MAX + 1];
    size_t len;

    if (lf == NULL || lf == record)
        return err_set(err, ERR_DATA, "the record has no header");
    len = (size_t)(lf - record);
    memcpy(header, record, len);
    header[len] = '\0';
    job->keep_ms = -1;
    if (strlen(header) != len || read_header(job, header) < 0) {
        job_done(job);
        return err_set(err, ERR_DATA, "the record's header is corrupt");
    }
    if (!job->is_big) {
        job->payload_len = n - len - 1;
        job->payload = mem_dup(lf + 1, job->payload_len);
    }
    return 0;
}

void job_own_names(struct job *job)
{
    job->schedule = job->schedule != NULL ? mem_strdup(job->schedule) : NULL;
    job->topic = job->topic != NULL ? mem_strdup(job->topic) : NULL;
    job->checkpoint = job->checkpoint != NULL ? mem_strdup(job->checkpoint) : NULL;
}

void job_done(struct job *job)
{
    free(job->payload);
    free(job->schedule);
    free(job->topic);
    free(job->checkpoint);
    job->payload = job->schedule = job->topic = job->checkpoint = NULL;
    job->payload_len = 0;
}

bool job_is_id(const char *s, size_t n)
{
    if (n != JOB_ID_LEN || s[0] != 'j')
        return false;
    for (size_t i = 1; i < n; i++) {
        if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'z')))
            return false;
    }
    return true;
}
