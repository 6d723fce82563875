#include "base/error_class.h"

const char *error_class_name(enum error_class class)
{
    static const char *const names[] = {"none",    "link",   "wait",  "full", "moved",
                                        "library", "denied", "unfit", "type", "call"};

    return names[class];
}
