#include "cli/show/failures.h"

#include <string.h>

#include "cli/show/out.h"
#include "json/failures.h"

void failures_show(const struct reply *value, int64_t now_ms)
{
    const char *at = reply_str(value), *label = "failed attempts";
    struct failure f;
    char when[48];

    while (value != NULL && failures_next(&at, &f)) {
        out_label(label);
        out_printf("%s, on ",
                   now_ms != 0 ? out_when(f.when_ms, now_ms, when) : out_instant(f.when_ms, when));
        out_text(f.host, strlen(f.host));
        out_printf(" (worker %lld): ", (long long)f.epoch);
        out_text(f.text, f.len);
        out_printf("\n");
        label = "";
    }
}
