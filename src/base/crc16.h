/* CRC-16 of XMODEM: polynomial 0x1021, from zero, not reflected. */
#ifndef LATER_BASE_CRC16_H
#define LATER_BASE_CRC16_H

#include <stddef.h>

unsigned crc16(const void *bytes, size_t n);

#endif
