# shellcheck shell=bash
# The file of users, and the producer's password in the server.
stage() {
    mkdir etc
    cp "$SOURCE/etc/users.acl" .
    sed -n 's/^user producer off/ACL SETUSER producer on >THE-PASSWORD/p' users.acl | redis-cli
}
