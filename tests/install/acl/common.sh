# For the scripts of the roles (tests/integration/test_acl.c runs them): a user of etc/users.acl does
# all of its work with the real programs, on an empty namespace. Exit status 0: all of it went well.
#
# $ROLE the user, $LATER and $LATERD the programs, $PORT and $SOCK of the server, $DIR a folder.
set -eu
laterd= listener=
trap 'kill -KILL $laterd $listener 2>/dev/null || true' EXIT
trap 'exit 124' TERM
LATER_REDIS_URL=redis://$ROLE@127.0.0.1:$PORT
REDISCLI_AUTH=secret
export LATER_REDIS_URL REDISCLI_AUTH
R='later:{default}'

# As the default user, who may all: what others have prepared.
root() { env -u REDISCLI_AUTH redis-cli -e -s "$SOCK" "$@" >/dev/null; }
root_later() { env -u REDISCLI_AUTH -u LATER_REDIS_URL "$LATER" --redis "unix:$SOCK" "$@"; }
# As the role.
later() { "$LATER" "$@" >/dev/null; }
bare() { redis-cli -e -p "$PORT" --user "$ROLE" "$@" >/dev/null; }
fcall() { function=$1; shift; bare FCALL "$function" 1 "$R" "$@"; }

# Wait for a command to succeed: half a minute on a free machine.
wait_for() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt ${patience:-1500} ] || return 1
        sleep 0.02
    done
}

root FLUSHALL
root_later setup >/dev/null
root_later limits set places semaphore 2 >/dev/null
root_later limits set speed rate 1000/1s >/dev/null

# A daemon of the default user, that runs what is there: a job "slow" for long.
root_laterd() {
    mkdir -p "$DIR/root-handlers"
    printf '#!/bin/sh\nread -r x\n[ "$x" != slow ] || exec sleep 60\n' >"$DIR/root-handlers/mail"
    chmod 755 "$DIR/root-handlers/mail"
    printf '%s\n' "redis: unix:$SOCK" 'state_dir: none' "handlers_dir: $DIR/root-handlers" \
        'stop_timeout: 0s' >"$DIR/root.yaml"
    env -u REDISCLI_AUTH -u LATER_REDIS_URL "$LATERD" --config "$DIR/root.yaml" >/dev/null 2>"$DIR/root.log" &
    laterd=$!
    wait_for grep -q event=registered "$DIR/root.log"
}
root_add() { root_later add "$@"; }
is_state() { root_later --json show "$1" | grep -q '^{[^{]*"state":"'"$2"'"'; }

# What is said on the wake channel from now on; whether that was said. Without the file of the script before.
listen() {
    rm -f "$DIR/wakes"
    env -u REDISCLI_AUTH redis-cli -s "$SOCK" SUBSCRIBE "$R:wake" >"$DIR/wakes" 2>&1 &
    listener=$!
    wait_for grep -q subscribe "$DIR/wakes"
}
heard() {
    patience=200 wait_for grep -q "^$1\$" "$DIR/wakes"
    kill $listener
    listener=
}

# Somebody follows what happens to jobs; whether that was told.
follow() {
    rm -f "$DIR/events"
    env -u REDISCLI_AUTH redis-cli -s "$SOCK" SUBSCRIBE "$R:events" >"$DIR/events" 2>&1 &
    listener="$listener $!"
    wait_for grep -q subscribe "$DIR/events"
    root FCALL later_v1_tail 1 "$R" 60000
}
told() { patience=200 wait_for grep -q "^$1 " "$DIR/events"; }
