#include "base/fault.h"

const char *fault_name(enum fault fault)
{
    static const char *const names[] = {"none",    "link",   "wait", "full", "moved",
                                        "library", "denied", "type", "call"};

    return names[fault];
}
