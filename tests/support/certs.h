/*
 * Certificates for tests of TLS, made by openssl in a folder: NAME.crt and NAME.key.
 *
 *   ca, other              two CAs
 *   server                 of ca, for localhost and 127.0.0.1
 *   expired                the same, out of date; its key can be read by others
 *   self                   signed by itself, for localhost
 *   client, foreign        of ca, of other
 */
#ifndef LATER_TESTS_SUPPORT_CERTS_H
#define LATER_TESTS_SUPPORT_CERTS_H

/* dir exists. 0, or the status of what failed. */
int certs_make(const char *dir);

#endif
