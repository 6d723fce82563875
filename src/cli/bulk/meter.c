#include "cli/bulk/meter.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_US 100000  /* between two drawings */
#define RATE_US 1000000 /* the rate is measured over so long */
#define BAR_MAX 30
#define LINE_BYTES 160

void meter_init(struct meter *m, bool is_wanted, uint64_t size)
{
    *m = (struct meter){.is_shown = is_wanted && isatty(STDERR_FILENO) == 1, .size = size};
    m->since = m->drawn = mono_now();
}

/* Columns to draw in. Not the last one, which makes some terminals begin a new line. */
static int width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 79;
    return size.ws_col < LINE_BYTES ? size.ws_col - 1 : LINE_BYTES - 1;
}

static void reckon(struct meter *m, struct mono now, uint64_t jobs)
{
    int64_t us = mono_until_us(m->since, now);

    if (us < RATE_US && m->rate > 0 && m->since_jobs > 0)
        return;
    m->rate = us > 0 ? (double)(jobs - m->since_jobs) * 1e6 / (double)us : 0;
    if (us < RATE_US)
        return;
    m->since = now;
    m->since_jobs = jobs;
}

/* Append "[#####     ]  50 %" in what is left of the line. */
static int put_share(char *line, int n, int columns, double share)
{
    int width = columns - n - 10, full;

    if (width > BAR_MAX)
        width = BAR_MAX;
    if (width < 5)
        return n + snprintf(line + n, (size_t)(LINE_BYTES - n), "  %3.0f %%", share * 100);
    full = (int)(share * width);
    return n + snprintf(line + n, (size_t)(LINE_BYTES - n), "  [%.*s%*s] %3.0f %%", full,
                        "##############################", width - full, "", share * 100);
}

static void draw(struct meter *m, uint64_t jobs, uint64_t bytes)
{
    char line[LINE_BYTES];
    int columns = width();
    int n = snprintf(line, sizeof(line), "%llu %s, %.0f/s", (unsigned long long)jobs,
                     jobs == 1 ? "job" : "jobs", m->rate);

    if (m->size > 0)
        n = put_share(line, n, columns, bytes < m->size ? (double)bytes / (double)m->size : 1.0);
    if (n > columns)
        n = columns;
    /* Overwrite a longer text with blanks: a terminal may not know an escape sequence for it. */
    (void)fprintf(stderr, "\r%.*s%*s", n, line, n < m->has_drawn ? m->has_drawn - n : 0, "");
    (void)fflush(stderr);
    m->has_drawn = n;
}

void meter_show(struct meter *m, uint64_t jobs, uint64_t bytes)
{
    struct mono now;

    if (!m->is_shown)
        return;
    now = mono_now();
    if (mono_until_us(m->drawn, now) < DRAW_US)
        return;
    m->drawn = now;
    reckon(m, now, jobs);
    draw(m, jobs, bytes);
}

void meter_wipe(struct meter *m)
{
    if (m->has_drawn > 0) {
        (void)fprintf(stderr, "\r%*s\r", m->has_drawn, "");
        (void)fflush(stderr); /* before what is written next */
    }
    m->has_drawn = 0;
}
