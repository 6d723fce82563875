#include "certs.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "shell.h"

#define MAKE_CERTIFICATES                                                                          \
    "cd %s && ca() { openssl req -x509 -newkey rsa:2048 -nodes -keyout $1.key -out $1.crt "        \
    "-subj /CN=$1 -days 30; } 2>>log && sign() { openssl req -newkey rsa:2048 -nodes -keyout "     \
    "$1.key -out $1.csr -subj /CN=$1 && echo \"subjectAltName=$3\" >ext && openssl x509 -req "     \
    "-in $1.csr -CA $2.crt -CAkey $2.key -CAcreateserial $4 -extfile ext -out $1.crt; } 2>>log "   \
    "&& ca ca && ca other && sign server ca DNS:localhost,IP:127.0.0.1 '-days 30' && "             \
    "sign expired ca DNS:localhost '-not_after 20200101000000Z -not_before 20190101000000Z' "      \
    "|| sign expired ca DNS:localhost '-days -1'; sign client ca DNS:me '-days 30' && "            \
    "sign foreign other DNS:me '-days 30' && openssl req -x509 -newkey rsa:2048 -nodes -keyout "   \
    "self.key -out self.crt -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 30 "    \
    "2>>log && chmod 600 *.key && chmod 644 expired.key"

int certs_make(const char *dir)
{
    CLEANUP_FREE char *line = mem_printf(MAKE_CERTIFICATES, dir);

    return test_sh(line);
}
