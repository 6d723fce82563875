#include "cli/signal_set.h"

void signal_set_add(sigset_t *set, const int *signals, size_t n)
{
    struct sigaction now;

    for (size_t i = 0; i < n; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            (void)sigaddset(set, signals[i]);
}
