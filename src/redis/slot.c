#include "redis/slot.h"

#include "base/crc16.h"

unsigned slot_of(const void *text, size_t n)
{
    return crc16(text, n) % SLOTS;
}
