/* The entry points of libFuzzer. FUZZ_TARGET is the target that this program runs. */
#include "base/log.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_set_level((enum log_level)(LOG_LEVEL_ERR - 1));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    return FUZZ_TARGET(data, n);
}
