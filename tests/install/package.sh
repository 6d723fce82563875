#!/bin/bash
# Tests the Debian package in a clean Debian 12 (tests/install/package/clean.sh), then boots this Debian
# (tests/install/boot/). Usage: tests/install/package.sh [-k FOLDER]   Needs root and the network; 77 without root.
#   -k FOLDER   work there and keep it: a second run uses the system that the first has made
# LATER_BOOT_ONLY='check_boot check_x' runs only these checks of the booted system.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/install/root.sh
keep=
if [ "${1-}" = -k ]; then
    keep=1
    mkdir -p "$2"
    work=$(realpath "$2")
else
    work=$(mktemp -d)
fi
trap '[ -n "$keep" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
suite=bookworm
mirror=${LATER_MIRROR-http://deb.debian.org/debian}
begin=$SECONDS

[ "$(id -u)" = 0 ] || { echo "package: NOT TESTED: needs root"; exit 77; }

say() { echo "package: $* ($((SECONDS - begin)) s)"; }

logged() { # LOG COMMAND...
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 60 "$log"
        echo "package: failed: $*"
        return 1
    }
}

build_package() {
    scripts/package "$work/package"
}

# In parallel: both mostly wait.
logged "$work/debootstrap.log" make_root "$suite" "$work/base" "$mirror" &
debootstrap=$!
logged "$work/build.log" build_package
wait $debootstrap
deb=$(echo "$work"/package/laterd_*.deb)
root=$work/root
rm -rf "$root"
cp -a "$work/base" "$root"
cp "$deb" "$root/laterd.deb"
next_of "$deb" "$root/laterd-next.deb" "$work"
say "built, and a clean $suite made"

cp tests/install/package/clean.sh "$root/tmp/"
if ! inside "$root" sh /tmp/clean.sh | tee "$work/clean.out" || [ "$(grep -c '^ok ' "$work/clean.out")" -ne 6 ]; then
    say 'FAILED in the clean root'
    exit 1
fi
say 'installed, upgraded, removed, purged in a clean root'

# In parallel with boot/run.sh: both mostly wait for downloads or for time to pass.
bash tests/install/package/container.sh "$work/base" "$work" "$deb" >"$work/container-test.log" 2>&1 &
container=$!
status=0
bash tests/install/boot/run.sh "$root" "$work" || status=$?
wait $container || {
    cat "$work/container-test.log"
    say 'FAILED as a container'
    exit 1
}
cat "$work/container-test.log"
[ "$status" -eq 0 ] || {
    say 'FAILED in the booted system'
    exit "$status"
}
say 'all done'
