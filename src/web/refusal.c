#include "web/refusal.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "json/put.h"

void refuse(struct http_answer *a, unsigned status, const char *code, const char *text)
{
    json_t *object = json_object();
    char of_http[16];

    (void)snprintf(of_http, sizeof(of_http), "HTTP_%u", status);
    code = code != NULL ? code : of_http;
    json_put_text(object, "error", code, strlen(code));
    json_put_text(object, "text", text, strlen(text));
    a->status = status;
    a->type = "application/json";
    json_write(&a->body, object);
    json_decref(object);
}

/* ---- what went wrong */

struct rule {
    enum err_code code;
    const char *starts; /* the text starts with this; "": whatever it says */
    unsigned status;
};

/* The first row that fits counts. What is not here is an answer of Redis that nobody expects. */
static const struct rule rules[] = {
    {ERR_REFUSED, "ELATER_NOJOB '", 400}, /* 'x' is no id; else there is no such job */
    {ERR_REFUSED, "ELATER_NO", 404},
    {ERR_REFUSED, "ELATER_STATE", 409},
    {ERR_REFUSED, "ELATER_FULL", 409},
    {ERR_REFUSED, "ELATER_UNIQUE", 409},
    {ERR_REFUSED, "ELATER_LIMIT", 409},
    {ERR_REFUSED, "ELATER_LOST", 409},
    {ERR_REFUSED, "ELATER_STALE", 409},
    {ERR_REFUSED, "ELATER_WORKER", 409},
    {ERR_REFUSED, "ELATER_TOKEN token must", 400}, /* else another job has it */
    {ERR_REFUSED, "ELATER_TOKEN", 409},
    {ERR_REFUSED, "ELATER_TYPE", 502},
    {ERR_REFUSED, "ELATER_BUG", 502},
    {ERR_REFUSED, "ELATER_", 400}, /* names, options and times that are none */
    {ERR_INPUT, "", 404},
    {ERR_USAGE, "", 400},
    {ERR_FORMAT, "", 400},
    {ERR_DENIED, "", 403},
    {ERR_UNAVAILABLE, "", 503},
    {ERR_TEMP, "", 503},
};

static unsigned status_of(const struct err *err)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (rules[i].code == err->code &&
            strncmp(err->text, rules[i].starts, strlen(rules[i].starts)) == 0)
            return rules[i].status;
    return 502;
}

/* "ELATER_STATE text": the code is told by itself. */
void refuse_err(struct http_answer *a, const struct err *err)
{
    char code[32];
    size_t n = strcspn(err->text, " ");
    bool is_ours = strncmp(err->text, "ELATER_", 7) == 0 && n < sizeof(code);

    if (is_ours)
        text_copy(code, n + 1, err->text);
    refuse(a, status_of(err), is_ours ? code : NULL,
           is_ours ? err->text + n + strspn(err->text + n, " ") : err->text);
}
