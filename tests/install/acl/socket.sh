# The user `worker` at the unix socket: the address in --redis, in the variables and in the file, the
# password from the environment and from a file, for the command and the daemon.
ROLE=worker
. "$(dirname "$0")/common.sh"
set -x

root_user() { env -u REDISCLI_AUTH redis-cli -s "$SOCK" "$@" >/dev/null; }
printf 'secret\n' >"$DIR/password"
chmod 600 "$DIR/password"
who() { "$LATER" "$@" cli ACL WHOAMI 2>/dev/null || :; }
root_user ACL SETUSER worker +acl\|whoami

for url in "unix:worker@$SOCK" "unix://worker@$SOCK" "unix:worker@$SOCK?db=0"; do
    [ "$(who --redis "$url")" = worker ]
    [ "$(LATER_REDIS_URL=$url who)" = worker ]
    [ "$(env -u LATER_REDIS_URL LATERD_REDIS="$url" HOME="$DIR" "$LATER" cli ACL WHOAMI)" = worker ]
    # A wrong password is refused: the user does log in.
    ! REDISCLI_AUTH=wrong "$LATER" --redis "$url" wait j00000000000 2>"$DIR/err"
    grep -q WRONGPASS "$DIR/err"
    status=0
    "$LATER" --redis "$url" wait j00000000000 2>"$DIR/err" || status=$?
    [ $status -eq 66 ]
    mkdir -p "$DIR/handlers"
    printf '#!/bin/sh\nexit 0\n' >"$DIR/handlers/mail"
    chmod 755 "$DIR/handlers/mail"
    printf '%s\n' "redis: $url" "redis_password_file: $DIR/password" 'state_dir: none' \
        "handlers_dir: $DIR/handlers" 'strict: true' >"$DIR/socket.yaml"
    [ "$(env -u REDISCLI_AUTH "$LATER" --config "$DIR/socket.yaml" cli ACL WHOAMI)" = worker ]
    env -u REDISCLI_AUTH "$LATERD" --config "$DIR/socket.yaml" --check-config >/dev/null 2>&1
    root_later add mail x >/dev/null
    rm -f "$DIR/socket.log" # the daemon before this one wrote it, too
    env -u REDISCLI_AUTH "$LATERD" --config "$DIR/socket.yaml" >/dev/null 2>"$DIR/socket.log" &
    laterd=$!
    wait_for grep -q 'event=end.*outcome=done' "$DIR/socket.log"
    env -u REDISCLI_AUTH redis-cli -s "$SOCK" CLIENT LIST | grep -q 'name=laterd.*user=worker'
    kill -TERM $laterd
    wait $laterd
    ! grep -q -E 'wake-denied|NOPERM' "$DIR/socket.log"
done
root_user ACL SETUSER worker -acl\|whoami
