/* A row of numbers as a line of blocks, for people. */
#ifndef LATER_CLI_SHOW_SPARKLINE_H
#define LATER_CLI_SHOW_SPARKLINE_H

#include <stddef.h>
#include <stdint.h>

#include "cli/show/out.h"

/* Write n numbers as one block each, the highest one as high as a line; 0 is a blank. In ASCII
 * where the locale is not UTF-8. -> the highest number */
uint64_t sparkline_put(const uint64_t *values, size_t n, enum out_style style);

#endif
