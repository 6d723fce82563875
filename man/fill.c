/*
 * Fills a template: fill FILE prints FILE with @VERSION@ and the like replaced, and each line that
 * is nothing but @PART@ with a list made from the tables that the programs work by. So no page and
 * no completion can miss a setting, a verb or an option. Run by the build only.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "parts.h"
#include "roff.h"

static const struct {
    const char *name;
    void (*put)(struct buf *out);
} parts[] = {
    {"VERBS", page_verbs},
    {"GLOBALS", page_globals},
    {"DAEMON_OPTIONS", page_daemon_options},
    {"CONFIG_FILES", page_config_files},
    {"SETTINGS", page_settings},
    {"QUEUE_SETTINGS", page_queue_settings},
    {"OWN_SETTINGS", page_own_settings},
    {"LIMIT_SETTINGS", page_limit_settings},
    {"SCHEDULE_SETTINGS", page_schedule_settings},
    {"BASH_VERBS", bash_verbs},
    {"BASH_OPTIONS", bash_options},
    {"BASH_VALUES", bash_values},
    {"BASH_OPERANDS", bash_operands},
    {"BASH_DAEMON_OPTIONS", bash_daemon_options},
    {"BASH_DAEMON_VALUES", bash_daemon_values},
    {"ZSH_VERBS", zsh_verbs},
    {"ZSH_GLOBALS", zsh_globals},
    {"ZSH_ARGUMENTS", zsh_arguments},
    {"ZSH_DAEMON_OPTIONS", zsh_daemon_options},
};

/* Within a line. */
static const struct {
    const char *name, *text;
} words[] = {
    {"VERSION", PACKAGE_VERSION}, {"SYSCONFDIR", SYSCONFDIR}, {"PKGDATADIR", PKGDATADIR},
    {"PKGLIBDIR", PKGLIBDIR},     {"DOCDIR", DOCDIR},
};

static bool is_name(const char *p, size_t n, const char *name)
{
    return strlen(name) == n && strncmp(p, name, n) == 0;
}

static int put_part(struct buf *out, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!is_name(name, n, parts[i].name))
            continue;
        parts[i].put(out);
        return 0;
    }
    return -1;
}

static int put_word(struct buf *out, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (!is_name(name, n, words[i].name))
            continue;
        roff_text(out, words[i].text, strlen(words[i].text));
        return 0;
    }
    return -1;
}

/* The length of a NAME between two @, at the first of which p stands; 0: there is none. */
static size_t name_len(const char *p)
{
    size_t n = strspn(p + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");

    return p[0] == '@' && n > 0 && p[n + 1] == '@' ? n : 0;
}

/* A line, with its end. */
static int put_line(struct buf *out, const char *line)
{
    size_t n = name_len(line);

    if (n > 0 && line[n + 2] == '\n' && put_part(out, line + 1, n) == 0)
        return 0;
    while (*line != '\0') {
        n = name_len(line);
        if (n == 0) {
            buf_add(out, line++, 1);
            continue;
        }
        if (put_word(out, line + 1, n) < 0)
            return -1;
        line += n + 2;
    }
    return 0;
}

static int fill(FILE *in, const char *path, struct buf *out)
{
    char *line = NULL;
    size_t room = 0, number = 0;
    int r = 0;

    while (r == 0 && getline(&line, &room, in) > 0) {
        number++;
        r = put_line(out, line);
    }
    if (r < 0)
        (void)fprintf(stderr, "%s:%zu: nothing to fill this in with: %s", path, number, line);
    free(line);
    return ferror(in) != 0 ? -1 : r;
}

int main(int argc, char **argv)
{
    CLEANUP_BUF struct buf out = BUF_INIT;
    FILE *in = argc == 2 ? fopen(argv[1], "r") : NULL;
    int r;

    if (in == NULL) {
        (void)fprintf(stderr, "fill: %s\n", argc == 2 ? strerror(errno) : "write: fill FILE");
        return EXIT_FAILURE;
    }
    r = fill(in, argv[1], &out);
    (void)fclose(in);
    if (r < 0 || fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
        return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
