#include "conf/conf_unknown.h"

#include <string.h>

#include "base/text.h"

static const char *scope_name(enum conf_scope kind)
{
    return kind == CONF_SCOPE_TOP        ? "at the top level"
           : kind == CONF_SCOPE_DEFAULTS ? "in defaults"
           : kind == CONF_SCOPE_LIMIT    ? "in a limit"
           : kind == CONF_SCOPE_SCHEDULE ? "in a schedule"
                                         : "in a queue";
}

static const char *nearest_row(enum conf_scope kind, const struct conf_row *rows, size_t nrows,
                               const char *path)
{
    const char *names[CONF_TOP_ROWS + CONF_QUEUE_ROWS + CONF_LIMIT_ROWS + CONF_SCHEDULE_ROWS + 4];
    size_t n = 0;

    for (size_t i = 0; i < nrows; i++)
        names[n++] = rows[i].path;
    if (kind == CONF_SCOPE_TOP) {
        names[n++] = "defaults";
        names[n++] = "limits";
        names[n++] = "queues";
        names[n++] = "schedules";
    }
    names[n] = NULL;
    return text_nearest(path, names);
}

#define SECTION_MAX 24

/* The nested mapping whose name is near: that of backoff.first is backoff. */
static bool nearest_section(const struct conf_row *rows, size_t nrows, const char *path,
                            char ret[SECTION_MAX])
{
    const char *const names[] = {ret, NULL};

    for (size_t i = 0; i < nrows; i++) {
        size_t n = strcspn(rows[i].path, ".");

        if (rows[i].path[n] == '\0' || n >= SECTION_MAX)
            continue;
        memcpy(ret, rows[i].path, n);
        ret[n] = '\0';
        if (strcmp(ret, path) != 0 && text_nearest(path, names) != NULL)
            return true;
    }
    return false;
}

/* Where a key that is unknown in this scope would be right, or NULL. */
static const char *right_section(enum conf_scope kind, const char *path)
{
    const struct conf_row *row = conf_row_find(conf_queue_rows, CONF_QUEUE_ROWS, path);

    if (row != NULL && row - conf_queue_rows >= CONF_DEFAULTS_ROWS)
        return "under a queue";
    if (row != NULL && kind == CONF_SCOPE_TOP)
        return "under defaults: or under a queue";
    if (row != NULL && (kind == CONF_SCOPE_LIMIT || kind == CONF_SCOPE_SCHEDULE))
        return "under a queue";
    if (kind != CONF_SCOPE_TOP && conf_row_find(conf_top_rows, CONF_TOP_ROWS, path) != NULL)
        return "at the top level of the file";
    if (kind == CONF_SCOPE_QUEUE && conf_row_find(conf_limit_rows, CONF_LIMIT_ROWS, path) != NULL)
        return "under the name of a gate in limits:";
    return NULL;
}

int conf_unknown_refuse(enum conf_scope kind, const struct conf_row *rows, size_t nrows,
                        const char *path, struct err *err)
{
    const char *section = right_section(kind, path);
    char mapping[SECTION_MAX];
    const char *near;

    if (conf_is_later_word(path))
        return err_set(err, ERR_CONFIG, "%s: is not in this version", path);
    if (section != NULL)
        return err_set(err, ERR_CONFIG, "%s: belongs %s", path, section);
    near = nearest_row(kind, rows, nrows, path);
    if (near != NULL)
        return err_set(err, ERR_CONFIG, "unknown key \"%s\" %s: did you mean \"%s\"%s?",
                       conf_show(path).s, scope_name(kind), near,
                       strchr(near, '.') != NULL ? " (the dot is a nested mapping)" : "");
    if (nearest_section(rows, nrows, path, mapping))
        return err_set(err, ERR_CONFIG,
                       "unknown key \"%s\" %s: did you mean \"%s\"? (It is a nested mapping.)",
                       conf_show(path).s, scope_name(kind), mapping);
    return err_set(err, ERR_CONFIG, "unknown key \"%s\" %s", conf_show(path).s, scope_name(kind));
}
