#include "job/traceparent.h"

#include <stddef.h>
#include <string.h>

#define TRACE_AT 3
#define PARENT_AT 36
#define FLAGS_AT 53

/* n lower case digits, then this byte */
static bool is_field(const char *s, size_t n, char end)
{
    return strspn(s, "0123456789abcdef") == n && s[n] == end;
}

static bool is_zero(const char *s, size_t n)
{
    return strspn(s, "0") >= n;
}

bool traceparent_trace_id(const char *text, char ret[TRACE_ID_LEN + 1])
{
    bool is_first = strncmp(text, "00-", 3) == 0;

    ret[0] = '\0';
    if (!is_field(text, 2, '-') || strncmp(text, "ff", 2) == 0 ||
        !is_field(text + TRACE_AT, TRACE_ID_LEN, '-') || is_zero(text + TRACE_AT, TRACE_ID_LEN) ||
        !is_field(text + PARENT_AT, 16, '-') || is_zero(text + PARENT_AT, 16) ||
        !(is_field(text + FLAGS_AT, 2, '\0') || (!is_first && is_field(text + FLAGS_AT, 2, '-'))))
        return false;
    memcpy(ret, text + TRACE_AT, TRACE_ID_LEN);
    ret[TRACE_ID_LEN] = '\0';
    return true;
}
