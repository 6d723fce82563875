#include "env.h"

#include <stdlib.h>

const char *test_build_dir(void)
{
    const char *build = getenv("LATER_BUILD_DIR");

    return build != NULL ? build : ".";
}

const char *test_source_dir(void)
{
    const char *source = getenv("LATER_SOURCE_DIR");

    return source != NULL ? source : ".";
}

bool test_is_long(void)
{
    return getenv("LATER_FULL") != NULL;
}

bool test_is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}
