#include "redis/slot.h"

unsigned slot_crc16(const void *text, size_t n)
{
    const unsigned char *at = text;
    unsigned crc = 0;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)at[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0)) & 0xffff;
    }
    return crc;
}

unsigned slot_of(const void *text, size_t n)
{
    return slot_crc16(text, n) % SLOTS;
}
