#include "finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char broken[32];
static const char *forgiven = "";
static char text[2048];

void finding_forgive(const char *rules)
{
    forgiven = rules;
}

static bool is_forgiven(const char *rule)
{
    size_t n = strlen(rule);

    for (const char *at = strstr(forgiven, rule); at != NULL; at = strstr(at + 1, rule))
        if ((at == forgiven || at[-1] == ',') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

void finding_break(const char *rule, const char *fmt, ...)
{
    va_list ap;

    if (finding_is_broken() || is_forgiven(rule))
        return;
    (void)snprintf(broken, sizeof(broken), "%s", rule);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
}

bool finding_is_broken(void)
{
    return broken[0] != '\0';
}

const char *finding_rule(void)
{
    return broken;
}

const char *finding_text(void)
{
    return text;
}

void finding_clear(void)
{
    broken[0] = '\0';
    text[0] = '\0';
}
