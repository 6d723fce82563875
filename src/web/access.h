/* Who may ask: whoever knows the token, or whom the proxy before a socket file names. */
#ifndef LATER_WEB_ACCESS_H
#define LATER_WEB_ACCESS_H

#include <stdbool.h>

#include "base/err.h"
#include "web/http.h"

#define ACCESS_TOKEN_MAX 128
#define ACCESS_WHO_MAX 128

struct access_rules {
    char token[ACCESS_TOKEN_MAX + 1]; /* "": none is asked for */
    const char *user_header;          /* "": there is none */
};

/* The token in the first line of the file, which nobody else may read; without a file (""), a new
 * one. 0, or -1 with err. */
int access_token(const char *file, char ret[ACCESS_TOKEN_MAX + 1], struct err *err);

/* May this request ask? Then who is written to ret. */
bool access_check(const struct access_rules *rules, const struct http_request *r,
                  char who[ACCESS_WHO_MAX]);

#endif
