#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_fill(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list ap;

    if (err == NULL)
        return;
    err->code = code;
    err->errnum = 0;
    va_start(ap, fmt);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
}

void err_fill_sys(struct err *err, int errnum, const char *fmt, ...)
{
    char msg[192];
    va_list ap;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    err_fill(err, ERR_SYSTEM, "%s: %s", msg, strerror(errnum));
    err->errnum = errnum;
}

void err_prefix(struct err *err, const char *fmt, ...)
{
    char inner[sizeof(err->text)];
    char outer[128];
    va_list ap;

    if (err == NULL)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(outer, sizeof(outer), fmt, ap);
    va_end(ap);
    memcpy(inner, err->text, sizeof(inner));
    inner[sizeof(inner) - 1] = '\0';
    /* Text that does not fit is cut at the end, where it matters least. */
    (void)snprintf(err->text, sizeof(err->text), "%s: %.*s", outer,
                   (int)(sizeof(err->text) - strlen(outer) - 3), inner);
}

int err_exit_status(const struct err *err)
{
    static const int status[] = {
#define ERR(name, exit_status) exit_status,
#include "base/err.def"
#undef ERR
    };

    return status[err->code];
}
