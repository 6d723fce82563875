#include "redis/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

struct tls {
    SSL *ssl;
    char name[256]; /* that the server's certificate has to be for */
    char names[80]; /* that it is for instead */
    bool wants_write;
    bool has_client_cert;
};

/* ---- files */

/* OpenSSL names neither the file nor errno. */
static int check_file(const char *what, const char *path, mode_t refused, struct err *err)
{
    struct stat st;

    if (stat(path, &st) < 0 || access(path, R_OK) < 0)
        return err_set(err, ERR_CONFIG, "%s %s: %s", what, path, strerror(errno));
    if ((st.st_mode & refused) != 0)
        return err_set(err, ERR_CONFIG, "%s %s can be read by others: chmod o= it", what, path);
    return 0;
}

/* A key with a passphrase cannot be used: nobody is there to ask. */
static int no_passphrase(char *to, int size, int for_writing, void *arg)
{
    (void)to;
    (void)size;
    (void)for_writing;
    *(bool *)arg = true;
    return -1;
}

static int load_ca(SSL_CTX *ctx, const char *ca, struct err *err)
{
    struct stat st;
    bool is_dir;

    if (ca[0] == '\0') {
        (void)SSL_CTX_set_default_verify_paths(ctx);
        return 0;
    }
    if (check_file("redis_tls_ca", ca, 0, err) < 0)
        return -1;
    is_dir = stat(ca, &st) == 0 && S_ISDIR(st.st_mode);
    if (SSL_CTX_load_verify_locations(ctx, is_dir ? NULL : ca, is_dir ? ca : NULL) == 1)
        return 0;
    return err_set(err, ERR_CONFIG, "redis_tls_ca %s holds no certificate (in PEM)", ca);
}

static int load_key(SSL_CTX *ctx, const struct url *url, struct err *err)
{
    bool has_passphrase = false;

    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_default_passwd_cb_userdata(ctx, &has_passphrase);
    if (check_file("redis_tls_key", url->tls.key, 07, err) < 0)
        return -1;
    ERR_clear_error();
    if (SSL_CTX_use_PrivateKey_file(ctx, url->tls.key, SSL_FILETYPE_PEM) == 1)
        return 0;
    if (has_passphrase)
        return err_set(err, ERR_CONFIG,
                       "redis_tls_key %s has a passphrase: write it without one (openssl pkey)",
                       url->tls.key);
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH ||
        ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH)
        return err_set(err, ERR_CONFIG, "redis_tls_key %s is not the key of redis_tls_cert %s",
                       url->tls.key, url->tls.cert);
    return err_set(err, ERR_CONFIG, "redis_tls_key %s holds no private key (in PEM)", url->tls.key);
}

static int load_cert(SSL_CTX *ctx, const struct url *url, struct err *err)
{
    if (url->tls.cert[0] == '\0' && url->tls.key[0] == '\0')
        return 0;
    if (url->tls.cert[0] == '\0' || url->tls.key[0] == '\0')
        return err_set(err, ERR_CONFIG, "redis_tls_cert and redis_tls_key go together");
    if (check_file("redis_tls_cert", url->tls.cert, 0, err) < 0)
        return -1;
    if (SSL_CTX_use_certificate_chain_file(ctx, url->tls.cert) != 1)
        return err_set(err, ERR_CONFIG, "redis_tls_cert %s holds no certificate (in PEM)",
                       url->tls.cert);
    return load_key(ctx, url, err);
}

/* ---- opening */

/* Write the names that a certificate is for. */
static void show_names(const X509 *cert, char *to, size_t size)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    CLEANUP_BUF struct buf shown = BUF_INIT;

    for (int i = 0; names != NULL && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type != GEN_DNS)
            continue;
        buf_puts(&shown, shown.len > 0 ? ", " : "");
        text_escape(&shown, ASN1_STRING_get0_data(name->d.dNSName),
                    (size_t)ASN1_STRING_length(name->d.dNSName));
    }
    text_cut(&shown, 60);
    text_copy(to, size, shown.len > 0 ? buf_str(&shown) : "no name");
    GENERAL_NAMES_free(names);
}

/* The certificate is at hand only here, not when the handshake has failed. */
static int on_verify(int is_good, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = SSL_get_app_data(ssl);

    if (!is_good)
        show_names(X509_STORE_CTX_get0_cert(store), t->names, sizeof(t->names));
    return is_good;
}

static bool is_address(const char *name)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Tell the server which name we want, and check its certificate against it. An address is not
 * sent: RFC 6066 has only names there. */
static int expect(struct tls *t, const char *name)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);

    text_copy(t->name, sizeof(t->name), name);
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1 ? 0 : -1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(t->ssl, name) != 1 || SSL_set_tlsext_host_name(t->ssl, name) != 1)
        return -1;
    return 0;
}

static SSL_CTX *make_context(const struct url *url, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL) {
        (void)err_set(err, ERR_SYSTEM, "OpenSSL cannot be used");
        return NULL;
    }
    (void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    /* Redis never renegotiates; writing might wait for reading then. */
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_read_ahead(ctx, 1); /* one read for many records, not two for each */
    if (load_ca(ctx, url->tls.ca, err) == 0 && load_cert(ctx, url, err) == 0)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

struct tls *tls_open(int fd, const struct url *url, struct err *err)
{
    const char *name = url->tls.name[0] != '\0' ? url->tls.name : url->name;
    struct tls *t;
    SSL_CTX *ctx;

    /* Else OpenSSL frees its state in exit(3), while the probe's thread may be using it. */
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    ERR_clear_error();
    ctx = make_context(url, err);
    if (ctx == NULL)
        return NULL;
    t = mem_new(sizeof(*t));
    t->has_client_cert = url->tls.cert[0] != '\0';
    t->ssl = SSL_new(ctx);
    SSL_CTX_free(ctx); /* ssl keeps it */
    if (t->ssl == NULL || SSL_set_fd(t->ssl, fd) != 1 ||
        expect(t, name[0] != '\0' ? name : url->host) < 0) {
        (void)err_set(err, ERR_CONFIG, "TLS cannot be set up for the name '%s'", t->name);
        tls_close(t);
        return NULL;
    }
    (void)SSL_set_app_data(t->ssl, t);
    SSL_set_connect_state(t->ssl);
    return t;
}

void tls_close(struct tls *t)
{
    if (t == NULL)
        return;
    if (t->ssl != NULL) {
        ERR_clear_error();
        if (SSL_is_init_finished(t->ssl))
            (void)SSL_shutdown(t->ssl);
        SSL_free(t->ssl);
    }
    free(t);
}

/* ---- what went wrong */

static int refuse_certificate(const struct tls *t, long why, struct err *err)
{
    switch (why) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return err_set(err, ERR_CONFIG,
                       "the server's certificate, or one that it stands on, has "
                       "expired: renew it");
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return err_set(err, ERR_CONFIG,
                       "the server's certificate is not valid yet: is a clock "
                       "wrong?");
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return err_set(err, ERR_CONFIG,
                       "the server's certificate is for %s, not for %.60s: connect by that name, "
                       "or give it as redis_tls_name",
                       t->names, t->name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        return err_set(err, ERR_CONFIG,
                       "the server's certificate is self-signed: give that "
                       "certificate as redis_tls_ca");
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return err_set(err, ERR_CONFIG,
                       "the server's certificate is of a CA that is not known here: give the CA's "
                       "certificate as redis_tls_ca");
    default:
        return err_set(err, ERR_CONFIG, "the server's certificate is refused: %s",
                       X509_verify_cert_error_string(why));
    }
}

/* Reasons of OpenSSL that have a cure of ours. An alert is what the other side says of us. */
static int name_reason(const struct tls *t, unsigned long code, struct err *err)
{
    switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
        return err_set(err, ERR_CONFIG,
                       "this port does not speak TLS: write redis:// in place of rediss://");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        return err_set(
            err, ERR_CONFIG,
            "the server does not speak TLS 1.2 or newer: allow it there (tls-protocols)");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        if (!t->has_client_cert)
            return err_set(err, ERR_CONFIG,
                           "the server wants a certificate of its clients: give one as "
                           "redis_tls_cert and redis_tls_key");
        break;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
        return err_set(err, ERR_CONFIG, "the server refuses redis_tls_cert: %s",
                       ERR_reason_error_string(code));
    default:
        break;
    }
    return err_set(err, ERR_UNAVAILABLE, "TLS: %s",
                   ERR_reason_error_string(code) != NULL ? ERR_reason_error_string(code)
                                                         : "unknown error");
}

/* Sort what a call of OpenSSL returned (not above 0). 0: it waits, -1 with err. */
static int sort_out(struct tls *t, int returned, int errnum, struct err *err)
{
    long verified;

    switch (SSL_get_error(t->ssl, returned)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_WANT_WRITE:
        t->wants_write = true;
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return err_set(err, ERR_UNAVAILABLE, "Server closed the connection");
    case SSL_ERROR_SYSCALL:
        return err_set(err, ERR_UNAVAILABLE, "%s",
                       errnum != 0 ? strerror(errnum) : "Server closed the connection");
    default:
        break;
    }
    verified = SSL_get_verify_result(t->ssl);
    if (verified != X509_V_OK)
        return refuse_certificate(t, verified, err);
    if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return err_set(err, ERR_UNAVAILABLE, "Server closed the connection");
    return name_reason(t, ERR_peek_error(), err);
}

/* ---- calls: OpenSSL's errors are kept by thread, so each call begins with none */

static void begin(struct tls *t)
{
    ERR_clear_error();
    errno = 0;
    t->wants_write = false;
}

int tls_handshake(struct tls *t, struct err *err)
{
    int n;

    begin(t);
    n = SSL_do_handshake(t->ssl);
    return n == 1 ? 1 : sort_out(t, n, errno, err);
}

long tls_read(struct tls *t, void *to, size_t n, struct err *err)
{
    size_t got = 0;
    int done;

    begin(t);
    done = SSL_read_ex(t->ssl, to, n, &got);
    return done == 1 ? (long)got : sort_out(t, done, errno, err);
}

/* The other side closed. It may have said why before: so a refused certificate of ours is told in
 * TLS 1.3, after the handshake. */
static int hear_why(struct tls *t, int errnum, struct err *err)
{
    size_t got = 0;
    char byte;
    int done;

    begin(t);
    done = SSL_read_ex(t->ssl, &byte, 1, &got);
    if (done != 1 && SSL_get_error(t->ssl, done) == SSL_ERROR_SSL)
        return sort_out(t, done, errno, err);
    return err_set(err, ERR_UNAVAILABLE, "%s", strerror(errnum));
}

long tls_write(struct tls *t, const void *from, size_t n, struct err *err)
{
    size_t put = 0;
    int done;

    begin(t);
    done = SSL_write_ex(t->ssl, from, n, &put);
    if (done == 1)
        return (long)put;
    if (SSL_get_error(t->ssl, done) == SSL_ERROR_SYSCALL)
        return hear_why(t, errno, err);
    return sort_out(t, done, errno, err);
}

bool tls_has_more(const struct tls *t)
{
    return SSL_has_pending(t->ssl) == 1;
}

bool tls_wants_write(const struct tls *t)
{
    return t->wants_write;
}

const char *tls_protocol(const struct tls *t)
{
    return SSL_get_version(t->ssl);
}
