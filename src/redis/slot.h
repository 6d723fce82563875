/* The slot of Redis Cluster in which a namespace is: that of the text between the braces. */
#ifndef LATER_REDIS_SLOT_H
#define LATER_REDIS_SLOT_H

#include <stddef.h>

#define SLOTS 16384

/* Its CRC-16 (base/crc16.h) modulo 16384, as the cluster specification of Redis has it. */
unsigned slot_of(const void *text, size_t n);

#endif
