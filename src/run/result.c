#include "run/result.h"

void run_result_init(struct run_result *r)
{
    *r = (struct run_result){.retry_in_ms = -1, .result = BUF_INIT, .tail = BUF_INIT};
}

void run_result_done(struct run_result *r)
{
    buf_done(&r->result);
    buf_done(&r->tail);
}
