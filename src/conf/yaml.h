/*
 * A configuration file as a small bounded tree, made from libyaml's events.
 *
 * The value of a scalar is its text, quoted or not. No type is guessed: yes, null, ~, 010 and 1e3
 * stay as they are written, and the setting that has the value decides what it means. A missing
 * value is an empty text; where a mapping is expected, it is a mapping without entries.
 *
 * Refused, with FILE:LINE: more than 1 MiB, 8 levels or 100,000 nodes; anchors, aliases, tags,
 * merge keys, directives, a second document; a key twice, a key that is empty or no scalar; NUL and
 * control bytes, Unicode line breaks, UTF-16, invalid UTF-8. A UTF-8 byte order mark is skipped.
 * The bounds are checked on each event of libyaml, before its time can grow with the square of the
 * nesting. Main thread.
 */
#ifndef LATER_CONF_YAML_H
#define LATER_CONF_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define YAML_FILE_BYTES_MAX (1024 * 1024)
#define YAML_DEPTH_MAX 8
#define YAML_NODES_MAX 100000

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    int line;                       /* from 1; of the key where there is one */
    char *key;                      /* in a mapping, else NULL */
    char *text;                     /* of a YAML_TEXT, without a NUL in it, else NULL */
    struct yaml_node *first, *last; /* children, in the order of the file */
    struct yaml_node *next;
    size_t n; /* children */
};

/*
 * Read a file that others cannot have written: regular, owned by root or the effective user, not
 * writable by group or others. 0 and the tree in *ret (NULL for a file without content; free with
 * yaml_tree_free), or -1 with code INPUT (no such file), DENIED (unreadable, owner, mode), CONFIG
 * or SYSTEM; then *ret is what stands before the error, or NULL.
 */
int yaml_tree_load(const char *path, struct yaml_node **ret, struct err *err);

/* The same from memory; file is for messages. Code CONFIG or SYSTEM. */
int yaml_tree_parse(const char *file, const char *text, size_t n, struct yaml_node **ret,
                    struct err *err);
void yaml_tree_free(struct yaml_node *node);

/* Remove all children of a mapping but those with one of these keys (NULL-ended). node may be NULL.
 */
void yaml_node_keep(struct yaml_node *node, const char *const *keys);

/* A YAML_MAP, or the empty text that counts as one without entries. */
bool yaml_node_is_map(const struct yaml_node *node);

/* The child of a mapping with this key, or NULL. node may be NULL. */
const struct yaml_node *yaml_node_get(const struct yaml_node *node, const char *key);

/* The end of a path, short enough to leave space for the message after it. */
const char *yaml_short_path(const char *path);

#endif
