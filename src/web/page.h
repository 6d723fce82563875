/* The files of the page, which are part of the program (scripts/page-to-c). */
#ifndef LATER_WEB_PAGE_H
#define LATER_WEB_PAGE_H

#include <stddef.h>

#include "web/http.h"

struct page_file {
    const char *name; /* such as vendor/preact.js */
    const char *type; /* media type */
    const char *etag;
    const unsigned char *bytes;
    size_t n;
};

extern const struct page_file page_files[]; /* ended by a NULL name */

/* Answer with the file that the path names; the empty path is index.html. False: there is none. */
bool page_answer(const struct http_request *r, struct http_answer *a);

#endif
