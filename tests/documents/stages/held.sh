# shellcheck shell=bash
# A job holds a lock and a permit, and two wait for the lock.
config() {
    handler mail << 'END'
#!/bin/sh
[ "$(cat)" != dead ] || { echo 'reason no route to host' >&3; exit 65; }
exec sleep 600
END
    printf 'stop_timeout: 100ms\nqueues:\n  mail: { attempts: 1 }\n'
}

held() {
    local first
    later limits set smtp semaphore 20
    later limits set encoder semaphore 2
    first=$(later add mail --key user:42 --lock '{key}' --sem smtp '{"to":"a@b.c"}')
    in_state running "$first"
    later add mail --key user:42 --lock '{key}' '{"to":"a@b.c"}'
    keep ID "$(later add mail --key user:42 --lock '{key}' '{"to":"a@b.c"}')"
}
