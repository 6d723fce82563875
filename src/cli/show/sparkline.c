#include "cli/show/sparkline.h"

#define LEVELS 8

/* 0 stays blank, and anything above it does not. */
static size_t level_of(uint64_t value, uint64_t highest)
{
    size_t level;

    if (value == 0)
        return 0;
    level = (size_t)((double)value / (double)highest * LEVELS + 0.5);
    return level < 1 ? 1 : level > LEVELS ? LEVELS : level;
}

uint64_t sparkline_put(const uint64_t *values, size_t n, enum out_style style)
{
    static const char *const blocks[LEVELS + 1] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                   "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const ascii[LEVELS + 1] = {" ", "_", ".", ",", "-", "=", "+", "*", "#"};
    const char *const *marks = out_is_utf8() ? blocks : ascii;
    uint64_t highest = 0;

    for (size_t i = 0; i < n; i++)
        highest = values[i] > highest ? values[i] : highest;
    out_printf("%s", out_style(style));
    for (size_t i = 0; i < n; i++)
        out_printf("%s", marks[level_of(values[i], highest)]);
    out_printf("%s", out_style(OUT_PLAIN));
    return highest;
}
