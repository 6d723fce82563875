#include "base/crc16.h"

unsigned crc16(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    unsigned crc = 0;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned)at[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0)) & 0xffff;
    }
    return crc;
}
