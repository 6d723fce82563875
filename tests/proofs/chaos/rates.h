/*
 * The referee of rates: when each start was, and that no more of them were in any time than the
 * rate allows. A change of the definition, or a clock that is set back, begins anew: what holds
 * there is told by the model (tests/proofs/property).
 */
#ifndef LATER_TESTS_CHAOS_RATES_H
#define LATER_TESTS_CHAOS_RATES_H

#include <stdint.h>

#include "ledger.h"

void rates_clear(void);
/* So many passed now. */
void rates_pass(const struct ledger *l, int limited, int n, int64_t now_us);
/* The definition that holds for this name is another one, or may be; granted: starts that were kept
 * for jobs before, and count for nothing. */
void rates_change(const struct ledger *l, int limited, int64_t granted);
/* The clock was set back. */
void rates_set_back(void);

#endif
