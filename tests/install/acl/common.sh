# For the scripts of the roles, which tests/integration/test_acl.c runs: a user of etc/users.acl does
# all its work with the real programs, on an empty namespace. Exit status 0: all of it was allowed.
#
# $ROLE is the user, $LATER and $LATERD are the programs, $PORT and $SOCK belong to the server, $DIR is a folder.
set -eu
laterd= listener=
trap 'kill -KILL $laterd $listener 2>/dev/null || true' EXIT
trap 'exit 124' TERM
LATER_REDIS_URL=redis://$ROLE@127.0.0.1:$PORT
REDISCLI_AUTH=secret
export LATER_REDIS_URL REDISCLI_AUTH
R='later:{default}'

# As the default user, who may do everything: prepares what the role finds.
root() { env -u REDISCLI_AUTH redis-cli -e -s "$SOCK" "$@" >/dev/null; }
root_later() { env -u REDISCLI_AUTH -u LATER_REDIS_URL "$LATER" --redis "unix:$SOCK" "$@"; }
# As the user of the role.
later() { "$LATER" "$@" >/dev/null; }
bare() { redis-cli -e -p "$PORT" --user "$ROLE" "$@" >/dev/null; }
fcall() { function=$1; shift; bare FCALL "$function" 1 "$R" "$@"; }

# Wait until a command succeeds: half a minute at least.
wait_for() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt ${patience:-600} ] || return 1
        sleep 0.05
    done
}

root FLUSHALL
root_later setup >/dev/null
root_later limits set permits semaphore 2 >/dev/null
root_later limits set speed rate 1000/1s >/dev/null

# Start a daemon of the default user, which runs the jobs of mail: a job "slow" for a minute.
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

# Listen to a channel, that of the wakes if none is given, from now on, into a new file; then wait for a message.
listen() {
    rm -f "$DIR/wakes"
    env -u REDISCLI_AUTH redis-cli -s "$SOCK" SUBSCRIBE "$R:${1:-wake}" >"$DIR/wakes" 2>&1 &
    listener=$!
    wait_for grep -q subscribe "$DIR/wakes"
}
heard() {
    patience=80 wait_for grep -q "^$1\$" "$DIR/wakes"
    kill $listener
    listener=
}

# Follow the events of jobs; then check that an event was told.
follow() {
    rm -f "$DIR/events"
    env -u REDISCLI_AUTH redis-cli -s "$SOCK" SUBSCRIBE "$R:events" >"$DIR/events" 2>&1 &
    listener="$listener $!"
    wait_for grep -q subscribe "$DIR/events"
    root FCALL later_v1_tail 1 "$R" 60000
}
told() { patience=80 wait_for grep -q "^$1 " "$DIR/events"; }
