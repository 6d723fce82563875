#include "cli/bulk/job_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/json.h"
#include "job/job.h"
#include "job/step.h"
#include "json/base64.h"
#include "json/outcome.h"
#include "json/steps.h"

#define HEADER_MAX 2048 /* bytes, the limit of jobs.parse */
#define NAME_MAX_BYTES 40

/* Elements of a row of later_v1_export. */
enum { ID, SCORE, DUE, RECORD, BIG, TRIES, LAST, CHECKPOINT, STEPS };

enum value_kind { NUMBER, SPAN, TEXT, ENCODED /* text; in the record as job.h says */ };

/* The fields of a job: letter in its record, name in JSON, option of later_v1_import. */
static const struct field {
    char letter; /* NUL: not in the record, or stored without a letter */
    const char *name;
    const char *option;
    enum value_kind kind;
} fields[] = {
    {'\0', "priority", "priority", NUMBER},
    {'\0', "due_ms", "due", NUMBER},
    {'a', "attempts_max", "attempts", NUMBER},
    {'t', "timeout_ms", "timeout", SPAN},
    {'x', "expire_ms", "expire", SPAN},
    {'k', "keep_ms", "keep", SPAN},
    {'K', "key", "key", TEXT},
    {'T', "trace", "trace", TEXT},
    {'l', "lock", "lock", TEXT},
    {'s', "sem", "sem", TEXT},
    {'r', "rate", "rate", TEXT},
    {'u', "unique", "unique", TEXT},
    {'f', "unique_until_ms", "unique_until", NUMBER},
    {'n', "then", "then", TEXT},
    {'d', "on_dead", "on_dead", TEXT},
    {'p', "parent", "parent", TEXT},
    {'m', "reason", "reason", ENCODED},
    {'b', "batch", "batch", TEXT},
    {'B', "callback", "callback", TEXT},
    {'S', "schedule", "schedule", TEXT},
    {'O', "occurrence_ms", "occurrence", NUMBER},
    {'Y', "day", "day", NUMBER},
    {'P', "topic", "topic", TEXT},
    {'W', "pinned", "pinned", TEXT},
    {'\0', "unique_mode", "unique_mode", TEXT},
    {'\0', "token", "token", TEXT},
    {'\0', "checkpoint", "checkpoint", TEXT},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Names that an export writes and an import ignores. */
static const char *const told[] = {"id",         "queue",    "state",         "raw",
                                   "starts",     "attempt",  "crashes",       "gate",
                                   "worker",     "progress", "died_ms",       "until_ms",
                                   "cancelling", "outcome",  "payload_bytes", "added_ms",
                                   "started_ms", "failures", "caused",        "callback_of",
                                   NULL};

/* ---- to JSON */

static const struct field *by_letter(char letter)
{
    for (size_t i = 0; letter != '\0' && i < FIELDS; i++) {
        if (fields[i].letter == letter)
            return &fields[i];
    }
    return NULL;
}

static int put_reason(json_t *line, const char *name, const char *p, size_t n)
{
    char reason[JOB_WORD_MAX + 1];

    if (job_decode_reason(p, n, reason) < 0)
        return -1;
    json_put_bytes(line, name, reason, strlen(reason));
    return 0;
}

/* "X=value" of the header. Letters of a later version are ignored. */
static int put_field(json_t *line, const char *p, size_t n)
{
    const struct field *f;
    char digits[24];
    int64_t value;

    if (n < 2 || p[1] != '=')
        return -1;
    f = by_letter(p[0]);
    if (f != NULL && f->kind == ENCODED)
        return put_reason(line, f->name, p + 2, n - 2);
    if (f != NULL && f->kind == TEXT)
        json_put_bytes(line, f->name, p + 2, n - 2);
    if (f == NULL || f->kind == TEXT)
        return 0;
    if (n - 2 >= sizeof(digits))
        return -1;
    memcpy(digits, p + 2, n - 2);
    digits[n - 2] = '\0';
    if (text_parse_int(digits, 0, INT64_C(1) << 53, &value) < 0)
        return -1;
    json_put_int(line, f->name, value);
    return 0;
}

/* "<flag><queue>[ <priority>][ fields]", n bytes without the LF. */
static int put_header(json_t *line, const char *p, size_t n)
{
    const char *end = p + n, *at = memchr(p, ' ', n);
    int64_t priority = 5;

    if (n < 2 || (p[0] != '-' && p[0] != '+') ||
        !text_is_queue_name(p + 1, (at != NULL ? at : end) - (p + 1)))
        return -1;
    if (at != NULL && end - at >= 2 && at[1] >= '0' && at[1] <= '9' &&
        (at + 2 == end || at[2] == ' ')) {
        priority = at[1] - '0';
        at = at + 2 < end ? at + 2 : NULL;
    }
    json_put_int(line, "priority", priority);
    while (at != NULL) {
        const char *from = at + 1;

        at = memchr(from, ' ', (size_t)(end - from));
        if (put_field(line, from, (size_t)((at != NULL ? at : end) - from)) < 0)
            return -1;
    }
    return 0;
}

static void put_tries(json_t *line, const struct reply *tries)
{
    long long starts, attempts, crashes;

    if (sscanf(reply_str(tries), "%18lld %18lld %18lld", &starts, &attempts, &crashes) != 3)
        return;
    json_put_int(line, "starts", starts);
    json_put_int(line, "attempt", attempts);
    json_put_int(line, "crashes", crashes);
}

static void put_end(json_t *line, const struct reply *row, const char *state)
{
    const struct reply *last = reply_at(row, LAST);
    struct outcome outcome;
    json_t *object;

    if (strcmp(state, "dead") == 0)
        json_put_int(line, "died_ms", reply_int(reply_at(row, SCORE)));
    if (strcmp(state, "done") == 0)
        json_put_int(line, "until_ms", reply_int(reply_at(row, SCORE)));
    if (outcome_parse(reply_str(last), reply_len(last), &outcome) < 0)
        return;
    object = json_object();
    outcome_to_json(&outcome, object);
    (void)json_object_set_new(line, "outcome", object);
}

/* What the job has kept for its next attempt. */
static void put_kept(json_t *line, const struct reply *row)
{
    const struct reply *checkpoint = reply_at(row, CHECKPOINT);
    json_t *steps = steps_to_json(reply_at(row, STEPS));

    if (reply_len(checkpoint) > 0)
        json_put_bytes(line, "checkpoint", reply_str(checkpoint), reply_len(checkpoint));
    if (steps != NULL)
        (void)json_object_set_new(line, "steps", steps);
}

static int put_job(json_t *line, const struct reply *row, const char *state)
{
    const char *record = reply_str(reply_at(row, RECORD));
    size_t n = reply_len(reply_at(row, RECORD));
    const char *lf = memchr(record, '\n', n < HEADER_MAX ? n : HEADER_MAX);
    const struct reply *big = reply_at(row, BIG);

    if (lf == NULL || put_header(line, record, (size_t)(lf - record)) < 0)
        return -1;
    put_tries(line, reply_at(row, TRIES));
    put_end(line, row, state);
    put_kept(line, row);
    if (record[0] == '+' && reply_len(big) == 0)
        return -1;
    if (record[0] == '+')
        json_put_bytes(line, "payload", reply_str(big), reply_len(big));
    else
        json_put_bytes(line, "payload", lf + 1, n - (size_t)(lf + 1 - record));
    return 0;
}

json_t *job_to_json(const struct reply *row, const char *queue, const char *state)
{
    const struct reply *id = reply_at(row, ID), *due = reply_at(row, DUE);
    bool is_raw = reply_len(id) == 0;
    json_t *line = json_object();

    if (is_raw)
        (void)json_object_set_new(line, "raw", json_true());
    else
        json_put_text(line, "id", reply_str(id), reply_len(id));
    json_put_text(line, "queue", queue, strlen(queue));
    json_put_text(line, "state", state, strlen(state));
    if (reply_len(due) > 0)
        json_put_int(line, "due_ms", reply_int(due));
    if (is_raw && reply_len(due) == 0) { /* its score is no time: a claim would bury it */
        json_decref(line);
        return NULL;
    }
    if (is_raw) {
        const struct reply *member = reply_at(row, RECORD);

        json_put_bytes(line, "payload", reply_str(member), reply_len(member));
    } else if (put_job(line, row, state) < 0) {
        json_decref(line);
        return NULL;
    }
    return line;
}

/* ---- from JSON */

/* Whether name is `of`, or `of` with _base64. */
static bool is_name(const char *name, const char *of, bool *is_base64)
{
    size_t n = strlen(of);

    *is_base64 = strncmp(name, of, n) == 0 && strcmp(name + n, "_base64") == 0;
    return *is_base64 || strcmp(name, of) == 0;
}

/* Append the text, or the bytes that it encodes, as one word. */
static int add_bytes(struct call_args *w, const char *name, const json_t *value, bool is_base64,
                     struct err *err)
{
    CLEANUP_BUF struct buf bytes = BUF_INIT;

    if (!json_is_string(value))
        return err_set(err, ERR_FORMAT, "%s is no text", name);
    if (!is_base64) {
        call_args_add(w, json_string_value(value), json_string_length(value));
        return 0;
    }
    if (base64_get(&bytes, json_string_value(value), json_string_length(value)) < 0)
        return err_set(err, ERR_FORMAT, "%s is not in base 64", name);
    call_args_add(w, buf_str(&bytes), bytes.len);
    return 0;
}

static int add_option(struct call_args *w, const struct field *f, const json_t *value,
                      bool is_base64, struct err *err)
{
    call_args_puts(w, f->option);
    if (f->kind == TEXT || f->kind == ENCODED)
        return add_bytes(w, f->name, value, is_base64, err);
    if (is_base64 || !json_is_integer(value) || json_integer_value(value) < 0)
        return err_set(err, ERR_FORMAT, "%s is no whole number from 0 on", f->name);
    call_args_printf(w, f->kind == SPAN ? "%lldms" : "%lld", (long long)json_integer_value(value));
    return 0;
}

static int refuse_name(const char *name, struct err *err)
{
    const char *names[FIELDS + 2] = {"payload"};
    CLEANUP_BUF struct buf safe = BUF_INIT;
    const char *near;

    for (size_t i = 0; i < FIELDS; i++)
        names[i + 1] = fields[i].name;
    near = text_nearest(name, names);
    text_escape(&safe, name, strlen(name));
    text_cut(&safe, NAME_MAX_BYTES);
    if (near != NULL)
        return err_set(err, ERR_FORMAT, "there is no '%s' of a job: did you mean %s?",
                       buf_str(&safe), near);
    return err_set(err, ERR_FORMAT, "there is no '%s' of a job", buf_str(&safe));
}

struct reading {
    struct call_args *words;
    int options;
    bool is_alone, has_token;
    const char *payload; /* its name in the object; NULL: none yet */
};

/* Priority 5, which most jobs have, is not sent. */
static bool is_default(const struct field *f, const json_t *value)
{
    return f == &fields[0] && json_is_integer(value) && json_integer_value(value) == 5;
}

/* Append the text of NAME, or the bytes of NAME_base64, of an object. keeps_lines: else a line feed
 * becomes a blank. Nothing if there is neither. */
static int put_text(struct buf *out, const json_t *object, const char *name, bool keeps_lines,
                    struct err *err)
{
    CLEANUP_FREE char *encoded = mem_printf("%s_base64", name);
    const json_t *text = json_object_get(object, name), *base64 = json_object_get(object, encoded);
    size_t at = out->len;

    if ((text != NULL && !json_is_string(text)) || (base64 != NULL && !json_is_string(base64)))
        return err_set(err, ERR_FORMAT, "%s is no text", name);
    if (text != NULL)
        buf_add(out, json_string_value(text), json_string_length(text));
    else if (base64 != NULL &&
             base64_get(out, json_string_value(base64), json_string_length(base64)) < 0)
        return err_set(err, ERR_FORMAT, "%s is not in base 64", encoded);
    for (; at < out->len && !keeps_lines; at++)
        out->data[at] = out->data[at] == '\n' ? ' ' : out->data[at];
    return 0;
}

/* What its steps have printed, as steps_to_json has told it. */
static int add_steps(struct reading *r, const json_t *value, struct err *err)
{
    CLEANUP_BUF struct buf all = BUF_INIT;
    const json_t *step;
    size_t i;

    if (!json_is_array(value))
        return err_set(err, ERR_FORMAT, "steps is no list");
    json_array_foreach(value, i, step)
    {
        const char *name = json_string_value(json_object_get(step, "name"));
        CLEANUP_BUF struct buf output = BUF_INIT;

        if (name == NULL || !step_is_name(name))
            return err_set(err, ERR_FORMAT, "step %zu has no name that a step may have", i + 1);
        if (put_text(&output, step, "output", true, err) < 0)
            return -1;
        buf_printf(&all, "%s %zu\n", name, output.len);
        buf_add(&all, output.data, output.len);
    }
    call_args_puts(r->words, "steps");
    call_args_add(r->words, buf_str(&all), all.len);
    r->options++;
    r->is_alone = true;
    return 0;
}

/* Read one name of the object. A payload is only kept for later, since it must be the last word. */
static int read_name(struct reading *r, const char *name, const json_t *value, struct err *err)
{
    bool is_base64;

    if (is_name(name, "payload", &is_base64)) {
        if (r->payload != NULL)
            return err_set(err, ERR_FORMAT, "it has two payloads");
        r->payload = name;
        return 0;
    }
    if (strcmp(name, "steps") == 0)
        return add_steps(r, value, err);
    for (size_t i = 0; i < FIELDS; i++) {
        const char *of = fields[i].name;

        if (!is_name(name, of, &is_base64))
            continue;
        if (is_default(&fields[i], value))
            return 0;
        r->options++;
        r->has_token = r->has_token || strcmp(of, "token") == 0;
        r->is_alone = r->is_alone || r->has_token || strcmp(of, "unique") == 0 ||
                      strcmp(of, "pinned") == 0 || strcmp(of, "checkpoint") == 0;
        return add_option(r->words, &fields[i], value, is_base64, err);
    }
    for (size_t i = 0; told[i] != NULL; i++) {
        if (strcmp(name, told[i]) == 0)
            return 0;
    }
    return refuse_name(name, err);
}

/* FNV-1a, 64 bits. The library tells two payloads with one hash apart, and refuses the second. */
static uint64_t hash_of(const json_t *text)
{
    const char *p = json_string_value(text);
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; p != NULL && i < json_string_length(text); i++)
        hash = (hash ^ (unsigned char)p[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Make the token of the job's id, or of the payload of a raw member, which is unique in its set. */
static int add_token(struct reading *r, const json_t *line, struct err *err)
{
    const char *id = json_string_value(json_object_get(line, "id"));
    bool is_raw = json_is_true(json_object_get(line, "raw"));

    if (id == NULL && !(is_raw && r->payload != NULL))
        return err_set(err, ERR_FORMAT, "--once needs an id or a token in it");
    call_args_puts(r->words, "token");
    if (id != NULL)
        call_args_printf(r->words, "import:%.64s", id);
    else
        call_args_printf(r->words, "import:%016llx",
                         (unsigned long long)hash_of(json_object_get(line, r->payload)));
    r->options++;
    r->is_alone = true;
    return 0;
}

/* A whole number from 0 on; `otherwise` where the object has none of this name. */
static int64_t number_of(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : otherwise;
}

/* What a dead job died of, as R:errors has it, and its tries. */
static int add_dead(struct reading *r, const json_t *line, struct err *err)
{
    const json_t *outcome = json_object_get(line, "outcome");
    int64_t died_ms = number_of(line, "died_ms", -1), starts = number_of(line, "starts", 0);
    CLEANUP_BUF struct buf dead = BUF_INIT;

    if (died_ms < 0)
        return err_set(err, ERR_FORMAT, "it is dead and has no died_ms");
    buf_printf(&dead, "dead %lld %lld %lld ", (long long)number_of(outcome, "code", 0),
               (long long)died_ms, (long long)number_of(outcome, "start", starts));
    if (put_text(&dead, outcome, "text", false, err) < 0)
        return -1;
    buf_puts(&dead, "\n");
    if (put_text(&dead, outcome, "output", true, err) < 0)
        return -1;
    call_args_puts(r->words, "dead");
    call_args_add(r->words, dead.data, dead.len);
    call_args_puts(r->words, "tries");
    call_args_printf(r->words, "%lld %lld %lld", (long long)starts,
                     (long long)number_of(line, "attempt", 0),
                     (long long)number_of(line, "crashes", 0));
    r->options += 2;
    r->is_alone = true;
    return 0;
}

static bool is_dead(const json_t *line)
{
    const char *state = json_string_value(json_object_get(line, "state"));

    return state != NULL && strcmp(state, "dead") == 0;
}

static int read_object(json_t *line, const struct import_how *how, struct reading *r,
                       struct err *err)
{
    struct buf *bytes = &r->words->bytes;
    size_t at = bytes->len;
    char digits[3];
    const char *name;
    json_t *value;

    call_args_puts(r->words, "00"); /* the number of options, filled in below */
    json_object_foreach(line, name, value)
    {
        if (read_name(r, name, value, err) < 0)
            return -1;
    }
    if (how->is_once && !r->has_token && add_token(r, line, err) < 0)
        return -1;
    if (how->keeps_dead && is_dead(line) && add_dead(r, line, err) < 0)
        return -1;
    if (r->payload == NULL)
        return err_set(err, ERR_FORMAT, "it has no payload");
    (void)snprintf(digits, sizeof(digits), "%02u", (unsigned)r->options % 100);
    memcpy(bytes->data + at, digits, 2);
    return add_bytes(r->words, r->payload, json_object_get(line, r->payload),
                     strcmp(r->payload, "payload") != 0, err);
}

int job_from_json(const char *text, size_t n, const struct import_how *how, struct call_args *words,
                  bool *is_alone, struct err *err)
{
    struct reading r = {.words = words};
    json_error_t why;
    json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    int result;

    if (line == NULL)
        return err_set(err, ERR_FORMAT, "it is no JSON: %.120s", why.text);
    if (!json_is_object(line))
        result = err_set(err, ERR_FORMAT, "it is no JSON object");
    else
        result = read_object(line, how, &r, err);
    json_decref(line);
    *is_alone = r.is_alone;
    return result;
}
