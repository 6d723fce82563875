#include "conf/yaml.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/access.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/text.h"

#define PATH_SHOWN 100

struct builder {
    const char *file;
    struct yaml_node *root;
    struct yaml_node *open[YAML_DEPTH_MAX]; /* the collections we are in, outermost first */
    size_t depth;
    size_t nodes;
    size_t documents;
    char *key; /* read, waiting for its value */
    int key_line;
    bool is_ended;
};

const char *yaml_short_path(const char *path)
{
    size_t n = strlen(path);

    return n > PATH_SHOWN ? path + n - PATH_SHOWN : path;
}

void yaml_tree_free(struct yaml_node *node)
{
    while (node != NULL) {
        struct yaml_node *next = node->next;

        yaml_tree_free(node->first); /* no deeper than YAML_DEPTH_MAX */
        free(node->key);
        free(node->text);
        free(node);
        node = next;
    }
}

static bool is_among(const char *key, const char *const *keys)
{
    for (; key != NULL && *keys != NULL; keys++) {
        if (strcmp(key, *keys) == 0)
            return true;
    }
    return false;
}

void yaml_node_keep(struct yaml_node *node, const char *const *keys)
{
    struct yaml_node **at;

    if (node == NULL)
        return;
    at = &node->first;
    node->last = NULL;
    node->n = 0;
    while (*at != NULL) {
        struct yaml_node *child = *at;

        if (is_among(child->key, keys)) {
            node->last = child;
            node->n++;
            at = &child->next;
        } else {
            *at = child->next;
            child->next = NULL;
            yaml_tree_free(child);
        }
    }
}

bool yaml_node_is_map(const struct yaml_node *node)
{
    return node->kind == YAML_MAP || (node->kind == YAML_TEXT && node->text[0] == '\0');
}

const struct yaml_node *yaml_node_get(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *child;

    if (node == NULL || node->kind != YAML_MAP)
        return NULL;
    for (child = node->first; child != NULL; child = child->next)
        if (strcmp(child->key, key) == 0)
            return child;
    return NULL;
}

static int refuse(const char *file, size_t line, const char *why, struct err *err)
{
    return err_set(err, ERR_CONFIG, "%s:%zu: %s", file, line, why);
}

static bool is_bom16(const char *text, size_t n)
{
    return n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

/* U+0085, U+2028, U+2029: libyaml breaks lines there, hardly any program that shows a file does. */
static bool is_odd_break(const unsigned char *s, size_t len)
{
    return (len == 2 && s[0] == 0xc2 && s[1] == 0x85) ||
           (len == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9));
}

/* Refuse bytes that no line may have before libyaml reads them, to name the line and the byte. */
static int check_bytes(const char *file, const char *text, size_t n, struct err *err)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t line = 1, len;

    if (is_bom16(text, n))
        return refuse(file, 1, "the file is UTF-16: save it as UTF-8", err);
    for (size_t i = 0; i < n; i += len) {
        len = text_utf8_len(s + i, n - i);
        if (len == 0)
            return refuse(file, line, "bytes that are not UTF-8", err);
        if (s[i] == '\0')
            return refuse(file, line, "a NUL byte: is the file UTF-16, or damaged?", err);
        if (s[i] == 0x7f || (s[i] < 0x20 && strchr("\t\n\r", s[i]) == NULL))
            return refuse(file, line, "a control byte: write it as \"\\xNN\"", err);
        if (is_odd_break(s + i, len))
            return refuse(file, line, "a Unicode line break (U+0085, U+2028 or U+2029)", err);
        if (s[i] == '%' && (i == 0 || s[i - 1] == '\n' || s[i - 1] == '\r'))
            return refuse(file, line, "% at the start of a line: directives are not taken", err);
        if (s[i] == '\n')
            line++;
    }
    return 0;
}

static struct yaml_node *attach(struct builder *b, enum yaml_kind kind, int line)
{
    struct yaml_node *node = mem_new(sizeof(*node));
    struct yaml_node *parent;

    node->kind = kind;
    node->line = b->key != NULL ? b->key_line : line;
    node->key = TAKE_PTR(b->key);
    if (b->depth == 0) {
        b->root = node;
        return node;
    }
    parent = b->open[b->depth - 1];
    if (parent->first == NULL)
        parent->first = node;
    else
        parent->last->next = node;
    parent->last = node;
    parent->n++;
    return node;
}

static bool wants_key(const struct builder *b)
{
    return b->depth > 0 && b->open[b->depth - 1]->kind == YAML_MAP && b->key == NULL;
}

static int add_key(struct builder *b, const char *text, bool plain, int line, struct err *err)
{
    if (text[0] == '\0')
        return refuse(b->file, line, "an empty key", err);
    if (plain && strcmp(text, "<<") == 0)
        return refuse(b->file, line, "merge keys (<<) are not taken: write the settings out", err);
    b->key = mem_strdup(text);
    b->key_line = line;
    return 0;
}

static int add_text(struct builder *b, const yaml_event_t *event, int line, struct err *err)
{
    const char *text = (const char *)event->data.scalar.value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (event->data.scalar.anchor != NULL)
        return refuse(b->file, line, "anchors (&) are not taken: write the value out", err);
    if (event->data.scalar.tag != NULL)
        return refuse(b->file, line, "tags (!) are not taken: write the value alone", err);
    if (strlen(text) != event->data.scalar.length)
        return refuse(b->file, line, "a NUL byte (\"\\0\") in a value", err);
    if (wants_key(b))
        return add_key(b, text, plain, line, err);
    attach(b, YAML_TEXT, line)->text = mem_strdup(text);
    return 0;
}

struct opening {
    enum yaml_kind kind;
    const yaml_char_t *anchor, *tag;
};

static int open_node(struct builder *b, struct opening what, int line, struct err *err)
{
    if (what.anchor != NULL)
        return refuse(b->file, line, "anchors (&) are not taken: write the value out", err);
    if (what.tag != NULL)
        return refuse(b->file, line, "tags (!) are not taken: write the value alone", err);
    if (wants_key(b))
        return refuse(b->file, line, "a key must be a single word, not a list or mapping", err);
    if (b->depth == YAML_DEPTH_MAX)
        return refuse(b->file, line, "nested too deeply (8 levels at most)", err);
    b->open[b->depth] = attach(b, what.kind, line);
    b->depth++;
    return 0;
}

static int by_key_and_line(const void *a, const void *b)
{
    const struct yaml_node *x = *(struct yaml_node *const *)a;
    const struct yaml_node *y = *(struct yaml_node *const *)b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* It sorts the keys: comparing each key with each other one would be quadratic in the file. */
static int check_duplicates(const char *file, const struct yaml_node *map, struct err *err)
{
    CLEANUP_FREE struct yaml_node **keys = mem_grow(NULL, map->n, sizeof(struct yaml_node *));
    CLEANUP_BUF struct buf shown = BUF_INIT;
    size_t n = 0;

    for (struct yaml_node *child = map->first; child != NULL; child = child->next)
        keys[n++] = child;
    qsort(keys, n, sizeof(struct yaml_node *), by_key_and_line);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(keys[i - 1]->key, keys[i]->key) != 0)
            continue;
        text_escape(&shown, keys[i]->key, strlen(keys[i]->key));
        text_cut(&shown, 64);
        return err_set(err, ERR_CONFIG, "%s:%d: duplicate key \"%s\": first given in line %d", file,
                       keys[i]->line, buf_str(&shown), keys[i - 1]->line);
    }
    return 0;
}

static int close_node(struct builder *b, struct err *err)
{
    const struct yaml_node *node = b->open[--b->depth];

    assert(node != NULL); /* libyaml ends only what it has begun */
    return node->kind == YAML_MAP ? check_duplicates(b->file, node, err) : 0;
}

static int on_event(struct builder *b, const yaml_event_t *event, struct err *err)
{
    int line = (int)event->start_mark.line + 1;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents++ > 0)
            return refuse(b->file, line, "a second document (---) is not taken", err);
        return 0;
    case YAML_ALIAS_EVENT:
        return refuse(b->file, line, "aliases (*) are not taken: write the value out, or quote it",
                      err);
    case YAML_SCALAR_EVENT:
        return add_text(b, event, line, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(b,
                         (struct opening){YAML_LIST, event->data.sequence_start.anchor,
                                          event->data.sequence_start.tag},
                         line, err);
    case YAML_MAPPING_START_EVENT:
        return open_node(b,
                         (struct opening){YAML_MAP, event->data.mapping_start.anchor,
                                          event->data.mapping_start.tag},
                         line, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(b, err);
    case YAML_STREAM_END_EVENT:
        b->is_ended = true;
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int count_event(struct builder *b, const yaml_event_t *event, struct err *err)
{
    bool is_node = event->type == YAML_SCALAR_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
                   event->type == YAML_MAPPING_START_EVENT;

    if (is_node && ++b->nodes > YAML_NODES_MAX)
        return refuse(b->file, event->start_mark.line + 1,
                      "too many values (100000 at most in a file)", err);
    return 0;
}

/* For a tab libyaml would only say that a character "cannot start any token". */
static bool has_tab_indent(const char *text, size_t n, size_t line)
{
    const char *end = text + n;

    for (; line > 0 && text != NULL; line--) {
        text = memchr(text, '\n', (size_t)(end - text));
        if (text != NULL)
            text++;
    }
    for (; text != NULL && text < end && (*text == ' ' || *text == '\t'); text++)
        if (*text == '\t')
            return true;
    return false;
}

static int syntax_error(const struct builder *b, const yaml_parser_t *p, struct err *err)
{
    const char *text = (const char *)p->input.string.start;
    size_t n = (size_t)(p->input.string.end - p->input.string.start);
    size_t line = p->problem_mark.line;
    const char *why = p->problem != NULL ? p->problem : "not enough memory to read it";

    if (p->error == YAML_READER_ERROR) {
        line = 0;
        for (size_t i = 0; i < n && i < p->problem_offset; i++)
            line += text[i] == '\n';
        return refuse(b->file, line + 1, why, err);
    }
    if (has_tab_indent(text, n, line))
        return refuse(b->file, line + 1, "a tab in the indentation: indent with spaces", err);
    return err_set(err, ERR_CONFIG, "%s:%zu:%zu: not YAML: %s%s%s", b->file, line + 1,
                   p->problem_mark.column + 1, p->context != NULL ? p->context : "",
                   p->context != NULL ? ", " : "", why);
}

static int build(struct builder *b, yaml_parser_t *parser, struct err *err)
{
    while (!b->is_ended) {
        yaml_event_t event;
        int r;

        if (!yaml_parser_parse(parser, &event))
            return syntax_error(b, parser, err);
        r = count_event(b, &event, err);
        if (r == 0)
            r = on_event(b, &event, err);
        yaml_event_delete(&event);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* A document that is empty, or has only comments, is no tree. */
static bool is_nothing(const struct yaml_node *root)
{
    return root != NULL && root->kind == YAML_TEXT && root->text[0] == '\0';
}

int yaml_tree_parse(const char *file, const char *text, size_t n, struct yaml_node **ret,
                    struct err *err)
{
    struct builder b = {.file = yaml_short_path(file)};
    yaml_parser_t parser;
    int r;

    *ret = NULL;
    if (n > YAML_FILE_BYTES_MAX)
        return refuse(b.file, 1, "larger than 1 MiB", err);
    if (check_bytes(b.file, text, n, err) < 0)
        return -1;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, ERR_SYSTEM, "%s: not enough memory to read it", b.file);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    r = build(&b, &parser, err);
    yaml_parser_delete(&parser);
    free(b.key);
    if (is_nothing(b.root)) {
        yaml_tree_free(b.root);
        b.root = NULL;
    }
    *ret = b.root;
    return r;
}

static int open_error(const char *file, int errnum, struct err *err)
{
    CLEANUP_BUF struct buf cure = BUF_INIT;

    if (errnum == ENXIO)
        return err_set(err, ERR_CONFIG, "%s: not a regular file", file);
    (void)err_sys(err, errnum, "%s", file);
    if (err != NULL && errnum == EACCES) {
        size_t n = strlen(err->text);

        access_cure(file, R_OK, &cure);
        if (cure.len > 0)
            (void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", buf_str(&cure));
    }
    if (err != NULL && (errnum == ENOENT || errnum == ENOTDIR))
        err->code = ERR_INPUT;
    if (err != NULL && (errnum == EACCES || errnum == EPERM))
        err->code = ERR_DENIED;
    return -1;
}

/* Anybody who can write this file can make us run any program. */
static int check_file(const char *file, int fd, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "%s", file);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s: not a regular file", file);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(err, ERR_DENIED,
                       "%s: belongs to user %ld, not to root or to the user this runs as: "
                       "chown root %s",
                       file, (long)st.st_uid, file);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return err_set(err, ERR_DENIED, "%s: can be written by others: chmod go-w %s", file, file);
    if (st.st_size > YAML_FILE_BYTES_MAX)
        return refuse(file, 1, "larger than 1 MiB", err);
    return 0;
}

int yaml_tree_load(const char *path, struct yaml_node **ret, struct err *err)
{
    CLEANUP_BUF struct buf text = BUF_INIT;
    CLEANUP_CLOSE int fd = -1;
    const char *file = yaml_short_path(path);
    ssize_t n;

    *ret = NULL;
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return open_error(file, errno, err);
    if (check_file(file, fd, err) < 0)
        return -1;
    do {
        n = read(fd, buf_reserve(&text, 16384), 16384);
        if (n < 0)
            return err_sys(err, errno, "%s", file);
        text.len += (size_t)n;
    } while (n > 0 && text.len <= YAML_FILE_BYTES_MAX);
    return yaml_tree_parse(path, buf_str(&text), text.len, ret, err);
}
