#!/bin/sh
# systemd checks the units: they have no mistakes, and their exposure is limited, alone and with each
# drop-in. Needs systemd-analyze; skipped (77) without it.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}"
command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not here"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

units=$work/units
mkdir "$units"
cp systemd/laterd.service systemd/laterd-redis.service systemd/later-web.service "$units"
sh scripts/unit-of-instances <systemd/laterd.service >"$units/laterd@.service"

# exposure THRESHOLD UNIT [DROP-IN]: tenths, as --threshold has them
exposure() {
    root=$work/$2-${3:-alone}
    mkdir -p "$root/etc/systemd/system/$2.d"
    cp "$units/$2" "$root/etc/systemd/system/"
    [ -z "${3:-}" ] || cp "systemd/$3" "$root/etc/systemd/system/$2.d/"
    if ! systemd-analyze security --offline=true --root="$root" --threshold="$1" --no-pager \
        "$2" >"$work/out" 2>&1; then
        cat "$work/out"
        echo "$2${3:+ with $3}: more exposed than $1 tenths"
        exit 1
    fi
    echo "$2${3:+ with $3}: $(tail -n 1 "$work/out")"
}
for unit in laterd.service laterd@.service; do
    exposure 16 "$unit"
    exposure 12 "$unit" strict.conf
    exposure 40 "$unit" users.conf
    exposure 20 "$unit" cgroups.conf
done
exposure 12 laterd-redis.service
exposure 15 later-web.service

# systemd reports unknown words on standard error and ignores them.
mkdir "$units/laterd.service.d"
printf '#!/bin/sh\n' >"$units/program"
chmod 755 "$units/program"
sed -i "s#^\(Exec[A-Za-z]*\)=\(laterd\|redis-server\|later-web\)#\1=$units/program#" "$units"/*.service
cp "$units/laterd@.service" "$units/laterd@x.service"
cp systemd/cgroups.conf systemd/strict.conf systemd/users.conf "$units/laterd.service.d"
for unit in laterd.service laterd@x.service laterd-redis.service later-web.service; do
    systemd-analyze verify --man=no "$units/$unit" >"$work/out" 2>&1 || true
    if grep -E "^$units|^(laterd|Failed)" "$work/out"; then
        exit 1
    fi
done

# sysusers and tmpfiles: they must create the user and the folder.
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$work/root/etc"
    systemd-sysusers --root="$work/root" "$PWD/systemd/sysusers.d/laterd.conf" >"$work/out" 2>&1 || {
        cat "$work/out"
        exit 1
    }
    grep -q '^laterd:[^:]*:[0-9]*:[0-9]*:[^:]*:/var/lib/laterd:/usr/sbin/nologin$' "$work/root/etc/passwd"
    systemd-tmpfiles --root="$work/root" --create "$PWD/systemd/tmpfiles.d/laterd.conf"
    [ "$(stat -c %a "$work/root/etc/laterd/handlers")" = 755 ]
fi
