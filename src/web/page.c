#include "web/page.h"

#include <string.h>

/* Is the path the name of this file, segment by segment? */
static bool is_name(const struct http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t n = strcspn(name, "/");

        if (strlen(r->segment[i]) != n || strncmp(r->segment[i], name, n) != 0 ||
            (name[n] == '\0') != (i + 1 == r->n))
            return false;
        name += n + (name[n] == '/');
    }
    return r->n > 0;
}

static const struct page_file *find(const struct http_request *r)
{
    bool is_root = r->n == 1 && r->segment[0][0] == '\0';

    for (const struct page_file *f = page_files; r->n <= HTTP_SEGMENTS_MAX && f->name != NULL; f++)
        if (is_root ? strcmp(f->name, "index.html") == 0 : is_name(r, f->name))
            return f;
    return NULL;
}

bool page_answer(const struct http_request *r, struct http_answer *a)
{
    const struct page_file *f = r->is_post ? NULL : find(r);

    if (f == NULL)
        return false;
    a->type = f->type;
    a->etag = f->etag;
    a->status = strcmp(http_header(r, "If-None-Match"), f->etag) == 0 ? 304 : 200;
    a->constant = f->bytes;
    a->constant_len = a->status == 304 ? 0 : f->n;
    return true;
}
