#include "run/handler/handler.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/text.h"
#include "run/handler/perms.h"
#include "run/handler/program.h"

/* Check permissions as `how` asks. 0 for a mere warning, with its text in *err. */
static int check_perms(const char *path, enum handler_check how, struct err *err)
{
    if (how == HANDLER_CHECK_OFF || perms_check(path, err) == 0)
        return 0;
    return how == HANDLER_CHECK_STRICT ? -1 : 0;
}

static int check_absolute(const char *path, struct err *err)
{
    *err = (struct err)ERR_INIT;
    if (path[0] == '/')
        return 0;
    return err_set(err, ERR_CONFIG, "%s: a handler is named by its absolute path",
                   program_shown(path));
}

int handler_check(const char *path, enum handler_check how, struct err *err)
{
    if (check_absolute(path, err) != 0 || program_check(path, err) != 0)
        return -1;
    return check_perms(path, how, err);
}

int handler_check_object(const char *path, enum handler_check how, struct err *err)
{
    struct stat st;

    if (check_absolute(path, err) != 0)
        return -1;
    if (stat(path, &st) != 0)
        return err_sys(err, errno, "%s", program_shown(path));
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_CONFIG, "%s: a plug-in is a file", program_shown(path));
    return check_perms(path, how, err);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);

    return n > m && strcmp(name + n - m, suffix) == 0;
}

/* Files that editors and package managers leave behind (.dpkg-old, .rpmsave and similar). */
static bool is_leftover(const char *name)
{
    static const char *const suffixes[] = {"~", ".bak", ".orig", ".rej", ".swp"};
    static const char *const families[] = {".dpkg-", ".ucf-", ".rpm"};
    const char *dot = strrchr(name, '.');

    if (name[0] == '.' || (name[0] == '#' && has_suffix(name, "#")))
        return true;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (has_suffix(name, suffixes[i]))
            return true;
    for (size_t i = 0; dot != NULL && i < sizeof(families) / sizeof(families[0]); i++)
        if (strncmp(dot, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

/* A folder, or a file that is not meant to be run (a README). A dangling symlink is neither.
 * *has_no_record: it is a program that nobody may execute. */
static bool is_no_program(const char *path, bool *has_no_record)
{
    struct stat st;
    bool is_none = stat(path, &st) == 0 && (S_ISDIR(st.st_mode) || (st.st_mode & 0111) == 0);

    *has_no_record = is_none && S_ISREG(st.st_mode) && program_has_magic(path);
    return is_none;
}

static int compare(const void *a, const void *b)
{
    const struct handler_file *x = a, *y = b;
    int by_queue = strcmp(x->queue, y->queue);

    return by_queue != 0 ? by_queue : strcmp(x->path, y->path);
}

struct scan {
    const char *dir;
    enum handler_check how;
    handler_refused_f *refused;
    void *arg;
    struct handler_dir found;
};

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void refuse(const struct scan *s, const char *file, const char *reason)
{
    if (s->refused != NULL)
        s->refused(s->arg, file, reason);
}

static void refuse_forgotten(const struct scan *s, const char *name, const char *path)
{
    struct err err = ERR_INIT;

    err_fill(&err, ERR_CONFIG,
             "warning: not served, since it is not executable: if it is a handler, chmod +x %s",
             program_shown(path));
    refuse(s, name, err.text);
}

static void scan_entry(struct scan *s, const char *name)
{
    const char *dot = strrchr(name, '.');
    size_t n = dot != NULL ? (size_t)(dot - name) : strlen(name);
    struct handler_file *file;
    bool has_no_record;
    char *path;

    if (is_leftover(name))
        return;
    path = mem_printf("%s/%s", s->dir, name);
    if (is_no_program(path, &has_no_record)) {
        if (has_no_record && text_is_queue_name(name, n))
            refuse_forgotten(s, name, path);
        free(path);
        return;
    }
    if (!text_is_queue_name(name, n)) {
        refuse(s, name,
               "its name without extension is no queue name ([A-Za-z0-9][A-Za-z0-9_-]{0,63})");
        free(path);
        return;
    }
    s->found.at = mem_grow(s->found.at, s->found.n + 1, sizeof(*s->found.at));
    file = &s->found.at[s->found.n++];
    memcpy(file->queue, name, n);
    file->queue[n] = '\0';
    file->path = path;
}

/* Reports a file that shares its queue with another or fails the check; true if it may stay. */
static bool accept(const struct scan *s, size_t i)
{
    const struct handler_file *at = s->found.at, *twin = NULL;
    struct err err = ERR_INIT;
    char text[sizeof(err.text) + 16];

    if (i > 0 && strcmp(at[i].queue, at[i - 1].queue) == 0)
        twin = &at[i - 1];
    else if (i + 1 < s->found.n && strcmp(at[i].queue, at[i + 1].queue) == 0)
        twin = &at[i + 1];
    if (twin != NULL) {
        (void)snprintf(text, sizeof(text), "%.80s would serve queue %s too: remove one of them",
                       file_of(twin->path), at[i].queue);
        refuse(s, file_of(at[i].path), text);
        return false;
    }
    if (handler_check(at[i].path, s->how, &err) != 0) {
        refuse(s, file_of(at[i].path), err.text);
        return false;
    }
    if (err.code != ERR_NONE) {
        (void)snprintf(text, sizeof(text), "warning: %s", err.text);
        refuse(s, file_of(at[i].path), text);
    }
    return true;
}

/* First check all files, then remove: a refused file still is the twin of its neighbour. */
static void sift(struct scan *s)
{
    struct handler_dir *f = &s->found;
    bool *stays = mem_new(f->n * sizeof(*stays));
    size_t kept = 0;

    if (f->n > 1)
        qsort(f->at, f->n, sizeof(*f->at), compare);
    for (size_t i = 0; i < f->n; i++)
        stays[i] = accept(s, i);
    for (size_t i = 0; i < f->n; i++) {
        if (stays[i])
            f->at[kept++] = f->at[i];
        else
            free(f->at[i].path);
    }
    f->n = kept;
    free(stays);
}

int handler_scan(const char *dir, enum handler_check how, handler_refused_f *refused, void *arg,
                 struct handler_dir *ret, struct err *err)
{
    struct scan s = {.dir = dir, .how = how, .refused = refused, .arg = arg};
    const struct dirent *entry;
    DIR *d;

    *err = (struct err)ERR_INIT;
    *ret = (struct handler_dir){NULL, 0};
    if (dir[0] != '/')
        return err_set(err, ERR_CONFIG, "handlers_dir is not an absolute path");
    d = opendir(dir);
    if (d == NULL)
        return err_sys(err, errno, "handlers_dir cannot be read");
    if (check_perms(dir, how, err) != 0) {
        (void)closedir(d);
        return -1;
    }
    while ((entry = readdir(d)) != NULL)
        scan_entry(&s, entry->d_name);
    (void)closedir(d);
    sift(&s);
    *ret = s.found;
    return 0;
}

void handler_dir_done(struct handler_dir *d)
{
    for (size_t i = 0; i < d->n; i++)
        free(d->at[i].path);
    free(d->at);
    *d = (struct handler_dir){NULL, 0};
}
