#include "cli/show/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/show/json.h"
#include "cli/show/out.h"
#include "cli/show/table.h"

#define FURTHER "(further ones)"

struct group {
    char *text;
    char id[16]; /* of the last job */
    int64_t count, first_ms, last_ms;
};

struct groups {
    struct group *list;
    size_t n;
    json_t *indexes; /* text -> index in list */
};

struct groups *groups_new(void)
{
    struct groups *g = mem_new(sizeof(*g));

    g->indexes = json_object();
    return g;
}

void groups_free(struct groups *g)
{
    if (g == NULL)
        return;
    for (size_t i = 0; i < g->n; i++)
        free(g->list[i].text);
    free(g->list);
    json_decref(g->indexes);
    free(g);
}

/* The group of the text, which is made if need be. */
static struct group *group_of(struct groups *g, const char *text)
{
    const json_t *index = json_object_get(g->indexes, text);

    if (index != NULL)
        return &g->list[json_integer_value(index)];
    if (g->n >= GROUPS_MAX && strcmp(text, FURTHER) != 0)
        return group_of(g, FURTHER);
    (void)json_object_set_new_nocheck(g->indexes, text, json_integer((json_int_t)g->n));
    g->list = mem_grow(g->list, g->n + 1, sizeof(*g->list));
    g->list[g->n] = (struct group){
        .text = mem_strdup(text),
    };
    return &g->list[g->n++];
}

static bool ends_with(const struct buf *b, const char *text)
{
    size_t n = strlen(text);

    return b->len >= n && memcmp(b->data + b->len - n, text, n) == 0;
}

void groups_fold(const char *text, size_t n, struct buf *to)
{
    for (size_t i = 0; i < n;) {
        size_t digits = 0;

        while (i + digits < n && isdigit((unsigned char)text[i + digits]))
            digits++;
        if (digits > 0 && !ends_with(to, "exit status ") && !ends_with(to, "signal "))
            buf_puts(to, "*");
        else
            buf_add(to, text + i, digits > 0 ? digits : 1);
        i += digits > 0 ? digits : 1;
    }
}

/* The group of these bytes, with so many jobs more, of which the first failed then. */
static struct group *count_in(struct groups *g, const char *text, size_t n, int64_t count,
                              int64_t first_ms)
{
    CLEANUP_BUF struct buf name = BUF_INIT;
    struct group *group;

    buf_add(&name, text, n);
    group = group_of(g, buf_str(&name));
    group->count += count;
    if (first_ms > 0 && (group->first_ms == 0 || first_ms < group->first_ms))
        group->first_ms = first_ms;
    return group;
}

void groups_add(struct groups *g, const char *text, size_t n, const char *id, size_t id_len,
                int64_t ms)
{
    struct group *group = count_in(g, text, n, 1, ms);

    if (ms < group->last_ms)
        return;
    group->last_ms = ms;
    text_copy(group->id, id_len < sizeof(group->id) ? id_len + 1 : sizeof(group->id), id);
}

void groups_join(struct groups *g, const char *text, size_t n, int64_t count, int64_t first_ms,
                 int64_t last_ms, const char *id)
{
    struct group *group = count_in(g, text, n, count, first_ms);

    if (group->id[0] != '\0' && last_ms <= group->last_ms)
        return;
    group->last_ms = last_ms;
    text_copy(group->id, sizeof(group->id), id);
}

static int by_count(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

static void show_json(const struct group *group, const char *name, const char *state)
{
    json_t *line = json_object();

    json_put_bytes(line, name, group->text, strlen(group->text));
    json_put_text(line, "state", state, strlen(state));
    json_put_int(line, "count", group->count);
    if (group->first_ms > 0) {
        json_put_int(line, "first_ms", group->first_ms);
        json_put_int(line, "last_ms", group->last_ms);
    }
    json_put_text(line, "last_id", group->id, strlen(group->id));
    json_print(line);
}

static void show_table(const struct group *list, size_t n, const char *name, int64_t now_ms)
{
    const struct table_column columns[] = {{"COUNT", true, false},
                                           {"FIRST FAILED", false, TABLE_SPARE},
                                           {"LAST FAILED", false, false},
                                           {"LAST ID", false, TABLE_SPARE},
                                           {name, false, true}};
    struct table t;
    char when[48];

    table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < n; i++) {
        table_printf(&t, "%lld", (long long)list[i].count);
        table_printf(&t, "%s",
                     list[i].first_ms > 0 ? out_when(list[i].first_ms, now_ms, when) : "");
        table_printf(&t, "%s", list[i].first_ms > 0 ? out_when(list[i].last_ms, now_ms, when) : "");
        table_add(&t, list[i].id, strlen(list[i].id));
        table_add(&t, list[i].text, strlen(list[i].text));
    }
    table_flush(&t);
    table_done(&t);
}

void groups_show(const struct groups *g, bool is_json, const char *name, const char *state,
                 int64_t now_ms)
{
    CLEANUP_BUF struct buf title = BUF_INIT;
    CLEANUP_FREE struct group *list = mem_new((g->n + 1) * sizeof(*list));

    if (g->n > 0) {
        memcpy(list, g->list, g->n * sizeof(*list));
        qsort(list, g->n, sizeof(*list), by_count);
    }
    for (size_t i = 0; i < g->n && is_json; i++)
        show_json(&list[i], name, state);
    if (is_json)
        return;
    buf_puts(&title, name);
    for (size_t i = 0; i < title.len; i++)
        title.data[i] = (char)toupper((unsigned char)title.data[i]);
    show_table(list, g->n, buf_str(&title), now_ms);
}
