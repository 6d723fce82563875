#include "cli/args/job_state.h"

#include <string.h>

static const char *const names[JOB_STATE_MAX] = {"due", "parked", "running", "dead", "done"};

const char *job_state_name(enum job_state state)
{
    return names[state];
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    while (*list != '\0') {
        size_t len = strcspn(list, ",");

        if (len == n && memcmp(list, word, n) == 0)
            return true;
        list += len;
        list += *list == ',';
    }
    return false;
}

void job_states_of(const char *list, bool is_wanted[JOB_STATE_MAX])
{
    for (int i = 0; i < JOB_STATE_MAX; i++)
        is_wanted[i] = has_word(list, "all") || has_word(list, names[i]);
}
