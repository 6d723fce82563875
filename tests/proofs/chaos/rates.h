/*
 * The referee of rates. It notes when each start was, and checks that in no period there were more
 * starts than the rate allows. It starts again when the definition changes or the clock is set
 * back; the model in tests/proofs/property checks what holds then.
 */
#ifndef LATER_TESTS_CHAOS_RATES_H
#define LATER_TESTS_CHAOS_RATES_H

#include <stdint.h>

#include "ledger.h"

void rates_clear(void);
/* n starts passed this rate now. */
void rates_pass(const struct ledger *l, int limited, int n, int64_t now_us);
/* The definition for this name changed, or may have changed. granted: starts that were reserved for
 * jobs before; they do not count. */
void rates_change(const struct ledger *l, int limited, int64_t granted);
/* The clock was set back: forget the starts. */
void rates_set_back(void);

#endif
