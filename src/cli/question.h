/* A question to the person at the terminal, before something that cannot be undone. */
#ifndef LATER_CLI_QUESTION_H
#define LATER_CLI_QUESTION_H

#include "base/err.h"

/* question: "Remove 3 dead jobs of queue mail?". yes: what --yes would do, for the error: "removes
 * 3 dead jobs of queue mail". 1: yes. 0: no. -1 with code USAGE: there is no terminal. */
int question_ask(const char *question, const char *yes, struct err *err);

#endif
