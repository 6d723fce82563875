#!/bin/sh
# laterd under valgrind: runs 1,000 jobs and is stopped; no error, no leak of memory or descriptors.
# Usage: tests/checks/valgrind.sh (in the build tree)
set -eu
cd "$(dirname "$0")/../.."
command -v valgrind > /dev/null || exit 77
dir=$(mktemp -d)
redis=
laterd=
cleanup() {
    [ -z "$laterd" ] || kill -KILL "$laterd" 2> /dev/null || true
    [ -z "$redis" ] || { kill -TERM "$redis" 2> /dev/null && wait "$redis"; } || true
    rm -rf "$dir"
}
trap cleanup EXIT
await() { # SECONDS COMMAND...
    tries=$(($1 * 20))
    shift
    until "$@" > /dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { echo "waited in vain for: $*" >&2; cat "$dir/log" >&2; exit 1; }
        sleep 0.05
    done
}
mkdir "$dir/handlers"
printf '#!/bin/sh\ncat > /dev/null\necho some output\n[ $LATER_ATTEMPT = 2 ] || [ $((${LATER_FENCE} %% 10)) != 3 ]\n' > "$dir/handlers/work"
chmod 755 "$dir" "$dir/handlers" "$dir/handlers/work"
redis-server --port 0 --unixsocket "$dir/sock" --save '' --dir "$dir" > /dev/null &
redis=$!
await 10 redis-cli -s "$dir/sock" PING
cat > "$dir/conf" <<EOF
redis: unix:$dir/sock
state_dir: $dir/state
handlers_dir: $dir/handlers
concurrency: 8
defaults: { backoff: { first: 10ms }, keep: 1h }
EOF
chmod 644 "$dir/conf"
valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect,possible \
    --errors-for-leak-kinds=definite,indirect,possible --track-fds=yes --log-file="$dir/valgrind" \
    ./laterd --config "$dir/conf" > "$dir/log" 2>&1 &
laterd=$!
await 60 grep -q event=registered "$dir/log"
awk 'BEGIN { for (i = 0; i < 1000; i++) printf "FCALL later_add 1 later:{default} work job%d\r\n", i }' |
    redis-cli -s "$dir/sock" --pipe > /dev/null
done_jobs() { [ "$(redis-cli -s "$dir/sock" ZCARD 'later:{default}:done:work')" = 1000 ]; }
await 300 done_jobs
kill -TERM "$laterd"
status=0
wait "$laterd" || status=$?
laterd=
# Open at the end: only inherited descriptors (0, 1, 2 and others of the calling shell).
leaked=$(sed -n '/Open file descriptor/{N;p;}' "$dir/valgrind" | grep -c 'inherited' || true)
open=$(grep -c 'Open file descriptor' "$dir/valgrind" || true)
if [ "$status" -ne 0 ] || [ "$open" -ne "$leaked" ]; then
    echo "valgrind: exit status $status, $open descriptors open at the end, $leaked of them inherited" >&2
    cat "$dir/valgrind" >&2
    exit 1
fi
echo "valgrind: 1000 jobs, no errors, no leaks, no descriptors left open"
