. "$(dirname "$0")/common.sh"

mkdir -p "$DIR/handlers"
cat >"$DIR/handlers/mail" <<'END'
#!/bin/sh
cat >/dev/null
echo progress 50 half >&3
exit 0
END
printf '#!/bin/sh\nexit 1\n' >"$DIR/handlers/bad"
printf '#!/bin/sh\nexec sleep 60\n' >"$DIR/handlers/slow"
chmod 755 "$DIR/handlers"/*
printf 'secret\n' >"$DIR/password"
chmod 600 "$DIR/password"
cat >"$DIR/worker.yaml" <<END
redis: redis://$ROLE@127.0.0.1:$PORT
redis_password_file: $DIR/password
state_dir: none
handlers_dir: $DIR/handlers
strict: true
limits:
  own: { semaphore: 3 }
defaults: { attempts: 2, backoff: { first: 1ms } }
queues:
  bad: { lock: "l" }
END
for way in '' '--lock user' '--sem permits' '--rate speed' '--unique one' '--priority 3' '--keep 1h' '--token t'; do
    # shellcheck disable=SC2086 # words
    root_later add mail $way x >/dev/null
done
head -c 20000 /dev/zero | root_later add mail - >/dev/null
root ZADD "$R:due:mail" 1 raw
root_later add bad x >/dev/null
slow=$(root_later add slow x)
follow
rm -f "$DIR/worker.log"
"$LATERD" --config "$DIR/worker.yaml" >/dev/null 2>"$DIR/worker.log" &
laterd=$!

is_over() {
    kill -0 $laterd || exit 1
    ! grep -q -E 'event=refused|wake-denied|class=denied|check=rights|may not|NOPERM' "$DIR/worker.log" || exit 1
    "$@"
}
ended() { [ "$(grep -c 'event=end.*outcome=done' "$DIR/worker.log")" -ge 10 ]; }
died() { grep -q 'event=end.*queue=bad.*outcome=dead' "$DIR/worker.log"; }
runs() { root_later show "$slow" | grep -q running; }
gone() { ! root_later show "$slow" | grep -q running; }
wait_for is_over ended
wait_for is_over died
wait_for is_over runs
root_later cancel --running "$slow" >/dev/null
wait_for is_over gone
# The connections have a name by which an operator finds them.
root CLIENT LIST
env -u REDISCLI_AUTH redis-cli -s "$SOCK" CLIENT LIST | grep -q 'name=laterd.*user=worker'
kill -TERM $laterd
wait $laterd
is_clean() { ! grep -q -E 'event=refused|wake-denied|denied|NOPERM' "$DIR/worker.log"; }
is_clean
told started
told dead
