#include "web/refusal.h"

#include <stdio.h>
#include <string.h>

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
