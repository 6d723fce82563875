/* Descriptor 3, read in pieces; the first byte of the input is their size. */
#include <string.h>

#include "fuzz.h"
#include "run/exec/control_fd.h"

static void on_told(void *arg, enum run_word word, const char *text, size_t n)
{
    (void)arg;
    FUZZ_MUST(n <= (word == RUN_CHECKPOINT ? RUN_CHECKPOINT_BYTES : CONTROL_LINE_BYTES));
    FUZZ_MUST(word != RUN_CHECKPOINT || memchr(text, '\0', n) == NULL);
}

int fuzz_control(const uint8_t *data, size_t n)
{
    size_t piece = n > 0 ? data[0] + 1U : 1;
    struct mono now = {1000};
    struct control_fd c;
    struct run_report r;
    struct output output;

    run_report_init(&r);
    output_init(&output, "j00000000001", "mail");
    control_fd_init(&c, &output, &r, on_told, NULL);
    for (size_t at = 1; at < n; at += piece) {
        struct mono next;

        control_fd_add(&c, (const char *)data + at, n - at < piece ? n - at : piece);
        next = control_fd_tick(&c, now);
        FUZZ_MUST(mono_before(now, next));
        now = mono_add_ms(now, 30);
        FUZZ_MUST(c.lines.part.len <= CONTROL_LINE_BYTES);
        FUZZ_MUST(r.result.len <= RUN_RESULT_BYTES);
    }
    control_fd_end(&c);
    FUZZ_MUST(r.result.len <= RUN_RESULT_BYTES);
    FUZZ_MUST(r.retry_in_ms >= -1);
    control_fd_done(&c);
    output_done(&output);
    run_report_done(&r);
    return 0;
}
