#include "conf/conf_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_text.h"

#define ITEMS_MAX 64 /* of any list row */
#define RATE_PER_MAX_MS INT64_C(3155760000000)

static const char *expected(enum conf_type type)
{
    switch (type) {
    case CONF_TYPE_STR:
        return "a text";
    case CONF_TYPE_DUR:
        return "a duration such as 10s or 5m (units: ms s m h d)";
    case CONF_TYPE_DUR_OR_NONE:
        return "a duration such as 10s or 5m (units: ms s m h d), or none";
    case CONF_TYPE_SIZE:
        return "a size such as 64KiB or 1MiB";
    case CONF_TYPE_INT:
        return "a whole number such as 10";
    case CONF_TYPE_PCT:
        return "a percentage such as 15%";
    case CONF_TYPE_FACTOR:
        return "a factor such as 2 or 1.5";
    case CONF_TYPE_CHOICE:
        return "one word";
    case CONF_TYPE_RATE:
        return "a rate such as 100/1m: so many in a time (units: ms s m h d)";
    case CONF_TYPE_STRS:
        return "a list such as [first, second]";
    case CONF_TYPE_PAIRS:
        return "a mapping such as { NAME: value }";
    case CONF_TYPE_INTS:
        return "a list of numbers such as [75, 76]";
    }
    return "";
}

static int wrong_type(const struct conf_row *row, const char *text, struct err *err)
{
    return err_set(err, ERR_CONFIG, "%s: \"%s\" is not %s", row->path, conf_show(text).s,
                   expected(row->type));
}

static bool is_digits(const char *s)
{
    return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

static void print_number(enum conf_type type, int64_t v, struct buf *out);

static int check_range(const struct conf_row *row, int64_t v, struct err *err)
{
    CLEANUP_BUF struct buf range = BUF_INIT;

    if (v >= row->min && v <= row->max)
        return 0;
    print_number(row->type, row->min, &range);
    buf_puts(&range, " to ");
    print_number(row->type, row->max, &range);
    return err_set(err, ERR_CONFIG, "%s: out of range: from %s", row->path, buf_str(&range));
}

static int parse_duration(const struct conf_row *row, const char *text, int64_t *ret,
                          struct err *err)
{
    if (row->type == CONF_TYPE_DUR_OR_NONE && strcmp(text, "none") == 0) {
        *ret = CONF_NEVER;
        return 0;
    }
    if (is_digits(text))
        return err_set(err, ERR_CONFIG, "%s: %s has no unit: write %ss, or another of ms s m h d",
                       row->path, conf_show(text).s, conf_show(text).s);
    if (text_parse_duration(text, ret) < 0)
        return wrong_type(row, text, err);
    return check_range(row, *ret, err);
}

static int parse_int(const struct conf_row *row, const char *text, int64_t *ret, struct err *err)
{
    /* Some readers of YAML take it as octal, others as decimal. */
    if (text[0] == '0' && text[1] != '\0' && is_digits(text))
        return err_set(err, ERR_CONFIG, "%s: %s: a number without leading zeros", row->path,
                       conf_show(text).s);
    if (text_parse_int(text, INT64_MIN, INT64_MAX, ret) < 0)
        return wrong_type(row, text, err);
    return check_range(row, *ret, err);
}

static int parse_size(const struct conf_row *row, const char *text, int64_t *ret, struct err *err)
{
    if (text_parse_size(text, ret) < 0)
        return wrong_type(row, text, err);
    return check_range(row, *ret, err);
}

static int parse_percent(const struct conf_row *row, const char *text, int64_t *ret,
                         struct err *err)
{
    size_t n = strlen(text);
    char number[8];

    if (n < 2 || n > sizeof(number) || text[n - 1] != '%')
        return wrong_type(row, text, err);
    memcpy(number, text, n - 1);
    number[n - 1] = '\0';
    if (text_parse_int(number, 0, INT64_MAX, ret) < 0)
        return wrong_type(row, text, err);
    return check_range(row, *ret, err);
}

/* Digits, and up to three more after a point. */
static int parse_factor(const struct conf_row *row, const char *text, int64_t *ret, struct err *err)
{
    size_t whole = strspn(text, "0123456789");
    const char *rest = text + whole;
    char digits[16];
    size_t n = 0;

    if (whole < 1 || whole > 9)
        return wrong_type(row, text, err);
    if (*rest == '.' && is_digits(rest + 1) && strlen(rest + 1) <= 3) {
        n = strlen(rest + 1);
        memcpy(digits + whole, rest + 1, n);
        rest += n + 1;
    }
    if (*rest != '\0')
        return wrong_type(row, text, err);
    memcpy(digits, text, whole);
    memcpy(digits + whole + n, "000", 3 - n);
    digits[whole + 3] = '\0';
    if (text_parse_int(digits, 0, INT64_MAX, ret) < 0)
        return wrong_type(row, text, err);
    return check_range(row, *ret, err);
}

/* N/D. D is as the library takes it: over 0, at most 100 years. */
static int parse_rate(const struct conf_row *row, const char *text, struct conf_rate *ret,
                      struct err *err)
{
    const char *slash = strchr(text, '/');
    CLEANUP_FREE char *count = NULL;
    struct conf_rate rate;

    if (slash == NULL)
        return wrong_type(row, text, err);
    count = mem_dup(text, (size_t)(slash - text));
    if (!is_digits(count))
        return wrong_type(row, text, err);
    if (parse_int(row, count, &rate.n, err) < 0)
        return -1;
    if (is_digits(slash + 1))
        return err_set(err, ERR_CONFIG, "%s: %s has no unit: write %ss, or another of ms s m h d",
                       row->path, conf_show(text).s, conf_show(text).s);
    if (text_parse_duration(slash + 1, &rate.per_ms) < 0)
        return wrong_type(row, text, err);
    if (rate.per_ms < 1 || rate.per_ms > RATE_PER_MAX_MS)
        return err_set(err, ERR_CONFIG, "%s: the time of %s is out of range: from 1ms to 36525d",
                       row->path, conf_show(text).s);
    *ret = rate;
    return 0;
}

static int parse_choice(const struct conf_row *row, const char *text, int64_t *ret, struct err *err)
{
    CLEANUP_BUF struct buf known = BUF_INIT;

    for (int64_t i = 0; row->words[i] != NULL; i++) {
        if (strcmp(row->words[i], text) == 0) {
            *ret = i;
            return 0;
        }
        buf_printf(&known, "%s%s", i > 0 ? ", " : "", row->words[i]);
    }
    if (conf_is_later_word(text))
        return err_set(err, ERR_CONFIG, "%s: %s is not in this version: %s is", row->path, text,
                       buf_str(&known));
    return err_set(err, ERR_CONFIG, "%s: \"%s\" is not one of: %s", row->path, conf_show(text).s,
                   buf_str(&known));
}

static int parse_text(const struct conf_row *row, const char *text, char **ret, struct err *err)
{
    size_t n = strlen(text);

    if ((int64_t)n < row->min)
        return err_set(err, ERR_CONFIG, "%s: empty: give a value, or leave the line out",
                       row->path);
    if ((int64_t)n > row->max)
        return err_set(err, ERR_CONFIG, "%s: longer than %lld bytes", row->path,
                       (long long)row->max);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return err_set(err, ERR_CONFIG, "%s: \"%s\" has a control character", row->path,
                           conf_show(text).s);
    if (conf_text_check(row, text, err) < 0)
        return -1;
    free(*ret);
    *ret = mem_strdup(text);
    return 0;
}

static int parse_scalar(const struct conf_row *row, const char *text, void *value, struct err *err)
{
    int64_t v = 0;
    int r;

    switch (row->type) {
    case CONF_TYPE_DUR:
    case CONF_TYPE_DUR_OR_NONE:
        r = parse_duration(row, text, &v, err);
        break;
    case CONF_TYPE_SIZE:
        r = parse_size(row, text, &v, err);
        break;
    case CONF_TYPE_INT:
        r = parse_int(row, text, &v, err);
        break;
    case CONF_TYPE_PCT:
        r = parse_percent(row, text, &v, err);
        break;
    case CONF_TYPE_FACTOR:
        r = parse_factor(row, text, &v, err);
        break;
    case CONF_TYPE_CHOICE:
        r = parse_choice(row, text, &v, err);
        break;
    case CONF_TYPE_STR:
        return parse_text(row, text, value, err);
    case CONF_TYPE_RATE:
        return parse_rate(row, text, value, err);
    case CONF_TYPE_STRS:
    case CONF_TYPE_PAIRS:
    case CONF_TYPE_INTS:
    default:
        return wrong_type(row, text, err);
    }
    if (r == 0)
        *(int64_t *)value = v;
    return r;
}

static int set_strs(const struct conf_row *row, const char *const *items, size_t n,
                    struct conf_strs *value, struct err *err)
{
    if ((int64_t)n < row->min || (int64_t)n > row->max)
        return err_set(err, ERR_CONFIG, "%s: %zu entries: from %lld to %lld are taken", row->path,
                       n, (long long)row->min, (long long)row->max);
    if (conf_text_check_list(row, items, n, err) < 0)
        return -1;
    conf_value_done(row, value);
    if (n == 0)
        return 0;
    value->at = mem_new((n + 1) * sizeof(char *));
    for (; value->n < n; value->n++)
        value->at[value->n] = mem_strdup(items[value->n]);
    return 0;
}

static int set_ints(const struct conf_row *row, const char *const *items, size_t n,
                    struct conf_ints *value, struct err *err)
{
    struct conf_ints ints = {.n = 0};

    if (n > CONF_INTS_MAX)
        return err_set(err, ERR_CONFIG, "%s: more than %d numbers", row->path, CONF_INTS_MAX);
    for (size_t i = 0; i < n; i++) {
        int64_t v;

        if (parse_int(row, items[i], &v, err) < 0)
            return -1;
        ints.at[ints.n++] = (int)v;
    }
    *value = ints;
    return 0;
}

static int set_list(const struct conf_row *row, const char *const *items, size_t n, void *value,
                    struct err *err)
{
    if (row->type != CONF_TYPE_INTS)
        return set_strs(row, items, n, value, err);
    return set_ints(row, items, n, value, err);
}

static bool is_list(const struct conf_row *row)
{
    return row->type == CONF_TYPE_STRS || row->type == CONF_TYPE_PAIRS ||
           row->type == CONF_TYPE_INTS;
}

/* `handler: /path` and `env_pass: NAME`: a text that can mean nothing else is a list of one. */
static int read_list_of_one(const struct conf_row *row, const char *text, void *value,
                            struct err *err)
{
    if (row->type != CONF_TYPE_STRS || text[0] == '\0')
        return wrong_type(row, text, err);
    if (strpbrk(text, " \t\n,") != NULL)
        return err_set(err, ERR_CONFIG, "%s: \"%s\" is one text: write a list: [first, second]",
                       row->path, conf_show(text).s);
    return set_list(row, &text, 1, value, err);
}

/* Read a mapping of NAME: value. */
static int read_pairs(const struct conf_row *row, const struct yaml_node *map, void *value,
                      struct err *err)
{
    char *items[ITEMS_MAX];
    size_t n = 0;
    int r = 0;

    for (const struct yaml_node *node = map->first; node != NULL && r == 0; node = node->next) {
        if (node->kind != YAML_TEXT)
            r = err_set(err, ERR_CONFIG, "%s: %s: a text is expected", row->path,
                        conf_show(node->key).s);
        else if (strchr(node->key, '=') != NULL)
            r = err_set(err, ERR_CONFIG, "%s: \"%s\": a name must not have = in it", row->path,
                        conf_show(node->key).s);
        else if (n == ITEMS_MAX)
            r = err_set(err, ERR_CONFIG, "%s: more than %d entries", row->path, ITEMS_MAX);
        else
            items[n++] = mem_printf("%s=%s", node->key, node->text);
    }
    if (r == 0)
        r = set_list(row, (const char *const *)items, n, value, err);
    while (n > 0)
        free(items[--n]);
    return r;
}

int conf_value_read(const struct conf_row *row, const struct yaml_node *node, void *value,
                    struct err *err)
{
    const char *items[ITEMS_MAX];
    size_t n = 0;

    if (row->type == CONF_TYPE_PAIRS && yaml_node_is_map(node))
        return read_pairs(row, node, value, err);
    if (node->kind == YAML_TEXT)
        return is_list(row) ? read_list_of_one(row, node->text, value, err)
                            : parse_scalar(row, node->text, value, err);
    if (node->kind != YAML_LIST || !is_list(row))
        return err_set(err, ERR_CONFIG, "%s: a %s where %s is expected", row->path,
                       node->kind == YAML_LIST ? "list" : "mapping", expected(row->type));
    if (node->n > ITEMS_MAX)
        return err_set(err, ERR_CONFIG, "%s: more than %d entries", row->path, ITEMS_MAX);
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        if (item->kind != YAML_TEXT)
            return err_set(err, ERR_CONFIG, "%s: a %s within the list: %s is expected", row->path,
                           item->kind == YAML_LIST ? "list" : "mapping", expected(row->type));
        items[n++] = item->text;
    }
    return set_list(row, items, n, value, err);
}

/* Cut at commas, without blanks around the parts and brackets around the whole. */
static int split(const struct conf_row *row, char *text, const char **items, size_t *ret_n,
                 struct err *err)
{
    size_t len = strlen(text);
    char *rest = text;

    *ret_n = 0;
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text[len - 1] = '\0';
        rest = text + 1;
    }
    if (rest[strspn(rest, " ")] == '\0')
        return 0;
    while (rest != NULL) {
        char *item = strsep(&rest, ",");
        size_t n;

        item += strspn(item, " ");
        n = strlen(item);
        while (n > 0 && item[n - 1] == ' ')
            item[--n] = '\0';
        if (*ret_n == ITEMS_MAX)
            return err_set(err, ERR_CONFIG, "%s: more than %d entries", row->path, ITEMS_MAX);
        items[(*ret_n)++] = item;
    }
    return 0;
}

int conf_value_parse(const struct conf_row *row, const char *text, void *value, struct err *err)
{
    CLEANUP_FREE char *copy = NULL;
    const char *items[ITEMS_MAX];
    size_t n = strlen(text), len;

    for (size_t i = 0; i < n; i += len) {
        len = text_utf8_len((const unsigned char *)text + i, n - i);
        if (len == 0)
            return err_set(err, ERR_CONFIG, "%s: bytes that are not UTF-8", row->path);
    }
    if (!is_list(row))
        return parse_scalar(row, text, value, err);
    copy = mem_strdup(text);
    if (split(row, copy, items, &n, err) < 0)
        return -1;
    return set_list(row, items, n, value, err);
}

static void print_number(enum conf_type type, int64_t v, struct buf *out)
{
    char text[24];

    switch (type) {
    case CONF_TYPE_DUR:
    case CONF_TYPE_DUR_OR_NONE:
        buf_puts(out, v == CONF_NEVER ? "none" : text_duration(v, text));
        break;
    case CONF_TYPE_SIZE:
        buf_puts(out, text_size(v, text));
        break;
    case CONF_TYPE_PCT:
        buf_printf(out, "%lld%%", (long long)v);
        break;
    case CONF_TYPE_FACTOR:
        buf_printf(out, "%lld%s", (long long)(v / 1000), v % 1000 != 0 ? "." : "");
        for (v %= 1000; v > 0; v = v * 10 % 1000)
            buf_printf(out, "%lld", (long long)(v / 100));
        break;
    case CONF_TYPE_STR:
    case CONF_TYPE_INT:
    case CONF_TYPE_CHOICE:
    case CONF_TYPE_RATE:
    case CONF_TYPE_STRS:
    case CONF_TYPE_PAIRS:
    case CONF_TYPE_INTS:
        buf_printf(out, "%lld", (long long)v);
        break;
    }
}

/* Whether YAML reads the text unquoted as it is, in a list as well as after a key. */
static bool is_plain(const char *s)
{
    static const char known[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.+@:-";
    size_t n = strlen(s);

    return n > 0 && s[strspn(s, known)] == '\0' && strchr("-.:@", s[0]) == NULL && s[n - 1] != ':';
}

static uint32_t code_point(const unsigned char *p, size_t len)
{
    uint32_t c = p[0] & (0xffU >> (len + 1));

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fU);
    return c;
}

void conf_value_print_text(const char *text, struct buf *out)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strlen(text), len;

    if (is_plain(text)) {
        buf_puts(out, text);
        return;
    }
    buf_puts(out, "\"");
    for (size_t i = 0; i < n; i += len) {
        len = text_utf8_len(s + i, n - i);
        /* The short form keeps the longest name within the 1024 characters of a YAML key. */
        if (len > 1)
            buf_printf(out, len < 4 ? "\\u%04x" : "\\U%08x", code_point(s + i, len));
        else if (s[i] < 0x20 || s[i] == 0x7f)
            buf_printf(out, "\\x%02x", s[i]);
        else
            buf_printf(out, "%s%c", s[i] == '"' || s[i] == '\\' ? "\\" : "", s[i]);
        len = len > 0 ? len : 1;
    }
    buf_puts(out, "\"");
}

static void print_pairs(const struct conf_strs *pairs, struct buf *out)
{
    for (size_t i = 0; i < pairs->n; i++) {
        const char *value = strchr(pairs->at[i], '=');
        CLEANUP_FREE char *name = mem_dup(pairs->at[i], (size_t)(value - pairs->at[i]));

        buf_puts(out, i > 0 ? ", " : "{ ");
        conf_value_print_text(name, out);
        buf_puts(out, ": ");
        conf_value_print_text(value + 1, out);
    }
    buf_puts(out, pairs->n > 0 ? " }" : "{}");
}

void conf_value_print(const struct conf_row *row, const void *value, struct buf *out)
{
    const struct conf_strs *strs = value;
    const struct conf_ints *ints = value;
    const struct conf_rate *rate = value;
    char per[24];

    if (row->type == CONF_TYPE_RATE) {
        buf_printf(out, "%lld/%s", (long long)rate->n, text_duration(rate->per_ms, per));
    } else if (row->type == CONF_TYPE_STR) {
        conf_value_print_text(*(char *const *)value, out);
    } else if (row->type == CONF_TYPE_CHOICE) {
        buf_puts(out, row->words[*(const int64_t *)value]);
    } else if (row->type == CONF_TYPE_PAIRS) {
        print_pairs(strs, out);
    } else if (row->type == CONF_TYPE_STRS) {
        for (size_t i = 0; i < strs->n; i++) {
            buf_puts(out, i > 0 ? ", " : "[");
            conf_value_print_text(strs->at[i], out);
        }
        buf_puts(out, strs->n > 0 ? "]" : "[]");
    } else if (row->type == CONF_TYPE_INTS) {
        for (size_t i = 0; i < ints->n; i++)
            buf_printf(out, "%s%d", i > 0 ? ", " : "[", ints->at[i]);
        buf_puts(out, ints->n > 0 ? "]" : "[]");
    } else {
        print_number(row->type, *(const int64_t *)value, out);
    }
}

bool conf_value_is_equal(const struct conf_row *row, const void *a, const void *b)
{
    const struct conf_strs *x = a, *y = b;
    const struct conf_ints *i = a, *j = b;

    if (row->type == CONF_TYPE_STR)
        return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    if (row->type == CONF_TYPE_INTS)
        return i->n == j->n && memcmp(i->at, j->at, i->n * sizeof(i->at[0])) == 0;
    if (row->type == CONF_TYPE_RATE)
        return memcmp(a, b, sizeof(struct conf_rate)) == 0;
    if (!is_list(row))
        return *(const int64_t *)a == *(const int64_t *)b;
    if (x->n != y->n)
        return false;
    for (size_t k = 0; k < x->n; k++)
        if (strcmp(x->at[k], y->at[k]) != 0)
            return false;
    return true;
}

void conf_value_copy(const struct conf_row *row, const void *from, void *to)
{
    const struct conf_strs *strs = from;

    conf_value_done(row, to);
    if (row->type == CONF_TYPE_STR)
        *(char **)to = mem_strdup(*(char *const *)from);
    else if (row->type == CONF_TYPE_STRS || row->type == CONF_TYPE_PAIRS)
        (void)set_strs(row, (const char *const *)strs->at, strs->n, to, NULL);
    else if (row->type == CONF_TYPE_INTS)
        *(struct conf_ints *)to = *(const struct conf_ints *)from;
    else if (row->type == CONF_TYPE_RATE)
        *(struct conf_rate *)to = *(const struct conf_rate *)from;
    else
        *(int64_t *)to = *(const int64_t *)from;
}

void conf_value_done(const struct conf_row *row, void *value)
{
    struct conf_strs *strs = value;

    if (row->type == CONF_TYPE_STR) {
        free(*(char **)value);
        *(char **)value = NULL;
    } else if (row->type == CONF_TYPE_STRS || row->type == CONF_TYPE_PAIRS) {
        for (size_t i = 0; i < strs->n; i++)
            free(strs->at[i]);
        free(strs->at);
        *strs = (struct conf_strs){NULL, 0};
    }
}
