/*
 * Reads the protocol of Redis (RESP 2), as far as proxies need it.
 */
#ifndef LATER_TESTS_SUPPORT_RESP_H
#define LATER_TESTS_SUPPORT_RESP_H

#include "base/buf.h"

struct resp_word {
    const char *at; /* inside the buf */
    size_t len;
};

/* The number behind the type character at `at`. -> where its line ends; 0: it is incomplete */
size_t resp_line(const struct buf *b, size_t at, long *ret_number);
/* Where the reply or request at `at` ends; 0: it is incomplete. */
size_t resp_end(const struct buf *b, size_t at);
/* The first words, up to `most`, of the whole request at the front. -> how many words it has */
size_t resp_words(const struct buf *b, struct resp_word *ret, size_t most);

#endif
