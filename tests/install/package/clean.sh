#!/bin/sh
# Runs inside a clean root (tests/install/package.sh) with /laterd.deb and /laterd-next.deb: install, run a job,
# upgrade while a job runs, remove, purge, and check what is left.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# There is no service manager, so packages must not start services. laterd is started by hand below.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
quietly() {
    "$@" >/tmp/quietly 2>&1 || {
        cat /tmp/quietly
        echo "failed: $*"
        exit 1
    }
}
until_true() { # SECONDS COMMAND...
    n=$(($1 * 10))
    shift
    while ! "$@"; do
        n=$((n - 1))
        [ "$n" -gt 0 ] || { echo "in vain: $*"; cat /tmp/laterd.log; exit 1; }
        sleep 0.1
    done
}
all_files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /dev -o -path /var/lib/dpkg \
        -o -path /var/cache -o -path /var/log -o -path /var/lib/systemd/deb-systemd-helper-enabled \) \
        -prune -o -print | sort
}

# Install the dependencies first, so that all files that are new later belong to laterd.
quietly apt-get -q install -y --no-install-recommends redis-server \
    $(dpkg-deb -f /laterd.deb Depends | tr ',' '\n' | sed 's/[|(].*//')
: >/tmp/quietly
all_files >/tmp/before
quietly apt-get -q install -y --no-install-recommends /laterd.deb
[ "$(getent passwd laterd | cut -d : -f 6,7)" = /var/lib/laterd:/usr/sbin/nologin ]
[ "$(stat -c '%U %a' /etc/laterd/handlers)" = 'root 755' ]
laterd --check-config
echo "ok installed: $(laterd --version)"

setpriv --reuid=nobody --clear-groups /usr/share/laterd/demo >/tmp/demo.log 2>&1 || { cat /tmp/demo.log; exit 1; }
grep '^4 of 4 jobs done' /tmp/demo.log
rm /tmp/demo.log
echo "ok the demo"

sed -i 's/^redis:.*/redis: embedded/' /etc/laterd/laterd.yaml # a change that the upgrade must keep
install -d -m 700 -o laterd -g laterd /var/lib/laterd         # as the unit does
cp /usr/share/laterd/handlers/hello /etc/laterd/handlers/
printf '#!/bin/sh\n: >/tmp/begun\nsleep 2\necho the end\n' >/etc/laterd/handlers/slow
chmod 755 /etc/laterd/handlers/slow
setpriv --reuid=laterd --regid=laterd --init-groups laterd >/tmp/laterd.log 2>&1 &
laterd=$!
until_true 20 grep -q event=registered /tmp/laterd.log
add() { later add "$@" | grep -o 'j[0-9a-z]\{11\}' | head -n 1; }
later wait >/dev/null "$(add hello 'good morning' --keep 1h)" --timeout 20s
echo "ok ran a job with redis: embedded"

id=$(add slow x --keep 1h)
until_true 20 test -e /tmp/begun
quietly dpkg -i /laterd-next.deb
later wait >/dev/null "$id" --timeout 20s
grep -q '^redis: embedded' /etc/laterd/laterd.yaml
kill -TERM $laterd
wait $laterd
[ "$(dpkg-query -W -f '${Version}' laterd)" != "$(dpkg-deb -f /laterd.deb Version)" ]
echo "ok upgraded over a running job, which has ended well"

quietly apt-get -q remove -y laterd
[ ! -e /usr/bin/laterd ] && [ -e /etc/laterd/laterd.yaml ] && [ -e /var/lib/laterd/appendonlydir ]
echo "ok removed: configuration and state are left"
quietly apt-get -q purge -y laterd
all_files >/tmp/after
# As doc/operations.md says under "Install": the files that the operator put into /etc/laterd, and the user.
cat >/tmp/expected <<'END'
/etc/laterd
/etc/laterd/handlers
/etc/laterd/handlers/hello
/etc/laterd/handlers/slow
END
comm -13 /tmp/before /tmp/after | grep -v -E '^/etc/(passwd|group|shadow|gshadow)-$' >/tmp/left || true
if ! diff /tmp/expected /tmp/left; then
    echo 'purged, and this is left (>) or gone (<) against the manual'
    exit 1
fi
if comm -23 /tmp/before /tmp/after | grep .; then
    echo 'purged, and this of others is gone'
    exit 1
fi
id laterd
echo "ok purged: nothing is left but the handlers that were put there, and the user"
rm -rf /etc/laterd /usr/sbin/policy-rc.d
