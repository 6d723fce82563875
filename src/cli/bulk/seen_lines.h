/*
 * Asks later_seen for each line of a feed, with pipelined calls, and prints the lines that are new,
 * byte for byte, in their order. Empty lines are left out. When lines come slowly, each goes at
 * once. The first error ends it; the answers under way are taken, and new lines are printed. One
 * thread.
 */
#ifndef LATER_CLI_BULK_SEEN_LINES_H
#define LATER_CLI_BULK_SEEN_LINES_H

#include "cli/cli.h"

#define SEEN_KEY_MAX 1024 /* bytes of a key, as in the library */

/*
 * name: the Bloom filter; options: their names and values, as the library has them; path: see
 * feed_open. Returns 0 if some line was new, 1 if none was; -1: the error names the line.
 */
int seen_lines(struct cli *cli, const char *name, const struct ask_call *options, const char *path,
               struct err *err);

/* Print with --json that a key is new or seen. */
void seen_put_json(const char *name, const char *key, size_t n, const char *status);

#endif
