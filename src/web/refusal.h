/* An answer that says no: {"error": CODE, "text": SENTENCE}. */
#ifndef LATER_WEB_REFUSAL_H
#define LATER_WEB_REFUSAL_H

#include "base/err.h"
#include "web/http.h"

/* code: of the library; NULL: HTTP_ and the status. text may hold any bytes. */
void refuse(struct http_answer *a, unsigned status, const char *code, const char *text);
/* The same of what went wrong with a question. */
void refuse_err(struct http_answer *a, const struct err *err);

#endif
