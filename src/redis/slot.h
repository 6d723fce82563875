/* The slot of Redis Cluster in which a namespace is: that of the text between the braces. */
#ifndef LATER_REDIS_SLOT_H
#define LATER_REDIS_SLOT_H

#include <stddef.h>

#define SLOTS 16384

/* CRC-16 of XMODEM (polynomial 0x1021, from zero). */
unsigned slot_crc16(const void *text, size_t n);

/* That modulo 16384, as the cluster specification of Redis has it. */
unsigned slot_of(const void *text, size_t n);

#endif
