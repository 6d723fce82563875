/*
 * redis/link.h on the virtual network, and what only the simulation does to a link.
 */
#ifndef LATER_TESTS_SIMULATION_VIRTUAL_LINK_H
#define LATER_TESTS_SIMULATION_VIRTUAL_LINK_H

#include "redis/link.h"

/* Its connection breaks, if it has one. */
void virtual_link_break(struct link *l);

#endif
