#!/bin/sh
# What systemd says of the units: no mistake in them, and how much they leave open, by themselves and
# with each drop-in. Needs systemd-analyze; skipped without.
set -eu
cd "${LATER_SOURCE_DIR:-$(dirname "$0")/..}"
command -v systemd-analyze >/dev/null || { echo "systemd-analyze is not here"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# exposure THRESHOLD [DROP-IN]: tenths, as --threshold has them
exposure() {
    root=$work/${2:-default}
    mkdir -p "$root/etc/systemd/system/laterd.service.d"
    cp systemd/laterd.service "$root/etc/systemd/system/"
    [ -z "${2:-}" ] || cp "systemd/$2" "$root/etc/systemd/system/laterd.service.d/"
    if ! systemd-analyze security --offline=true --root="$root" --threshold="$1" --no-pager laterd.service \
        >"$work/out" 2>&1; then
        cat "$work/out"
        echo "systemd/laterd.service${2:+ with $2}: more exposed than $1 tenths"
        exit 1
    fi
    echo "${2:-laterd.service}: $(tail -n 1 "$work/out")"
}
exposure 16
exposure 12 strict.conf
exposure 40 users.conf
exposure 20 cgroups.conf

# Words that systemd does not know are told on standard error, and passed over.
units=$work/units
mkdir -p "$units/laterd.service.d"
printf '#!/bin/sh\n' >"$units/program"
chmod 755 "$units/program"
sed "s|^\(Exec[A-Za-z]*\)=laterd|\1=$units/program|" systemd/laterd.service >"$units/laterd.service"
cp systemd/cgroups.conf systemd/strict.conf systemd/users.conf "$units/laterd.service.d"
systemd-analyze verify --man=no "$units/laterd.service" >"$work/out" 2>&1 || true
if grep "^$units" "$work/out"; then
    exit 1
fi
