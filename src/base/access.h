/*
 * Who may open a file that this user may not, and what lets him. For people. Any thread.
 */
#ifndef LATER_BASE_ACCESS_H
#define LATER_BASE_ACCESS_H

#include "base/buf.h"

/*
 * Append a sentence about the first folder on the path, or the file itself, that this user may not
 * pass: "members of group laterd may: usermod -aG laterd eve, then log in again". mode: R_OK, W_OK
 * or both. Nothing if he may open it, or if it is not there.
 */
void access_cure(const char *path, int mode, struct buf *out);

#endif
