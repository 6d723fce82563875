/*
 * redis/link.h on the virtual network, and what only the simulation does to a link.
 */
#ifndef LATER_TESTS_SIMULATION_VIRTUAL_LINK_H
#define LATER_TESTS_SIMULATION_VIRTUAL_LINK_H

#include "redis/link.h"

/* Break its connection, if it has one. */
void virtual_link_break(struct link *l);

#endif
