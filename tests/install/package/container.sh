#!/bin/bash
# Tests packaging/Containerfile without a container engine. Runs the instructions of its last stage in a clean root,
# with the programs of the package (as installed by its first stage). The result runs like a container: read-only
# root, user, environment and command of the file, a process 1, no network, only the socket of Redis.
# Usage: tests/install/package/container.sh BASE WORK DEB     BASE: a Debian made by debootstrap; not changed
set -euo pipefail
cd "$(dirname "$0")/../../.."
base=$1
work=$2
deb=$3
root=$work/image
file=packaging/Containerfile

say() { echo "container: $*"; }

# The last stage, one instruction a line.
stage() { awk '/^FROM /{ text = "" } /^#/ { next } { sub(/\\$/, ""); text = text $0 (/\\$/ ? "" : "\n") } END { printf "%s", text }' <(
    sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' "$file"); }
words_of() { stage | sed -n "s/^$1 //p"; }
json_words() { tr -d '[]"' | tr ',' ' '; } # no word contains a blank

rm -rf "$root"
cp -a "$base" "$root"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -euc "$1"' \
    "$root" "$(words_of RUN)" >"$work/container-build.log" 2>&1 || {
    tail -n 20 "$work/container-build.log"
    exit 1
}
rm -rf "$work/out"
dpkg-deb -x "$deb" "$work/out"
rm -r "$work/out/etc" "$work/out/lib" # make install puts nothing there
cp -a "$work/out/." "$root/"
mkdir -p "$root/redis" "$root/out"
user=$(words_of USER)
command=$(words_of ENTRYPOINT | json_words)
probe=$(words_of HEALTHCHECK | sed 's/.*CMD //' | json_words)
[ -n "$user" ] && [ "$command" = laterd ] && [ "$(words_of STOPSIGNAL)" = SIGTERM ]

# Handlers. `orphan` leaves a process behind; `looks` checks that process 1 has reaped it.
cat >"$root/etc/laterd/handlers/orphan" <<'END'
#!/bin/sh
setsid sleep 0.2 </dev/null >/dev/null 2>&1 &
echo $! >/tmp/orphan
END
cat >"$root/etc/laterd/handlers/looks" <<'END'
#!/bin/sh
[ "$(id -u):$(id -g)" = 990:990 ] && ! (: >/written) && ! env | grep LATERD_ || exit 65
for i in $(seq 100); do
    [ -e "/proc/$(cat /tmp/orphan)" ] || exit 0
    sleep 0.1
done
exit 65
END
chmod 755 "$root"/etc/laterd/handlers/*

mkdir -p "$work/redis"
redis-server --port 0 --unixsocket "$work/redis/redis.sock" --unixsocketperm 777 --save '' --dir "$work/redis" \
    >"$work/redis.log" 2>&1 &
redis=$!
: >"$work/container-log"
container=
trap 'kill $redis 2>/dev/null; [ -z "$container" ] || kill -KILL $container 2>/dev/null' EXIT
# shellcheck disable=SC2016,SC2046 # expanded by the inner shell; words
unshare --mount --pid --net --ipc --uts --fork --kill-child bash -euc '
    root=$1 redis=$2 user=$3
    shift 3
    mount --bind "$root" "$root" && mount --bind "$redis" "$root/redis"
    mount -o remount,bind,ro "$root"
    mount -t proc proc "$root/proc" && mount -t tmpfs tmpfs "$root/tmp"
    mount -t tmpfs tmpfs "$root/dev" && touch "$root/dev/null" && mount --bind /dev/null "$root/dev/null"
    cd "$root"
    exec chroot --userspec="$user" . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
    bash "$root" "$work/redis" "$user" $(words_of ENV) LATERD_REDIS=unix:/redis/redis.sock $command \
    >"$work/container-log" 2>&1 &
container=$!
later() { ./later --redis "unix:$work/redis/redis.sock" "$@"; }
for _ in $(seq 200); do
    ! grep -q event=registered "$work/container-log" || break
    sleep 0.1
done
grep -q event=registered "$work/container-log" || {
    cat "$work/container-log"
    exit 1
}
say 'configured by its environment alone, on a read-only root'
run() { later wait "$(later add "$1" x --keep 1h | grep -o 'j[0-9a-z]\{11\}' | head -n 1)" --timeout 20s >/dev/null; }
run orphan
run looks || {
    cat "$work/container-log"
    exit 1
}
say 'a handler is not root, writes nothing, and process 1 has reaped an orphan'
! grep -q event=root "$work/container-log"
first=$(pgrep -P $container)
# shellcheck disable=SC2086 # words
nsenter -t "$first" -m -u -i -n -p -r -w -S 990 -G 990 -- $probe
say "healthy, says $probe inside"
begin=$SECONDS
kill -TERM "$first" # as an engine does, to process 1
wait $container
container=
[ $((SECONDS - begin)) -le 5 ]
grep -q event=stopped "$work/container-log"
say "stopped in order"
