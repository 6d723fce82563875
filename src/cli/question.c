#include "cli/question.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int question_ask(const char *question, const char *yes, struct err *err)
{
    char answer[16] = "";

    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return err_set(err, ERR_USAGE, "there is no terminal to ask on: --yes %s", yes);
    (void)fprintf(stderr, "%s [y/N] ", question);
    (void)fflush(stderr);
    if (fgets(answer, sizeof(answer), stdin) == NULL)
        return 0;
    answer[strcspn(answer, "\n")] = '\0';
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
