/* The request of `later step`, as the daemon reads it from its socket. */
#include <string.h>

#include "fuzz.h"
#include "job/step.h"

int fuzz_step(const uint8_t *data, size_t n)
{
    struct step_request r;

    if (!step_request_parse((const char *)data, n, &r))
        return 0;
    FUZZ_MUST(n <= STEP_LINE_MAX);
    FUZZ_MUST(step_is_name(r.name));
    FUZZ_MUST(r.token[0] != '\0' && strlen(r.token) <= STEP_TOKEN_MAX);
    FUZZ_MUST(r.output_len <= STEP_OUTPUT_MAX && (r.has_output || r.output_len == 0));
    return 0;
}
