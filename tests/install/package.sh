#!/bin/bash
# Tests the Debian package in a clean Debian 12 (tests/install/package/clean.sh), then boots this Debian
# (tests/install/boot/). Usage: tests/install/package.sh [-k FOLDER]   Needs root and the network; 77 without root.
#   -k FOLDER   work there and keep it: a second run uses the system that the first has made
# LATER_BOOT_ONLY='check_boot check_x' runs only these checks of the booted system.
set -euo pipefail
cd "$(dirname "$0")/../.."
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

# Run a command in the root, with pids and mounts of its own. They end with the command.
inside() { # ROOT COMMAND...
    local root=$1
    shift
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev" && for node in null zero urandom random; do
            touch "$0/dev/$node" && mount --bind "/dev/$node" "$0/dev/$node" || exit 1
        done
        exec chroot "$0" "$@"' "$root" "$@"
}

logged() { # LOG COMMAND...
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 60 "$log"
        echo "package: failed: $*"
        return 1
    }
}

# Make the same package with a higher version, to upgrade to.
next_of() { # DEB TO
    local version
    version=$(dpkg-deb -f "$1" Version)
    rm -rf "$work/next"
    dpkg-deb -R "$1" "$work/next"
    sed -i "s/^Version: .*/Version: $version+next/" "$work/next/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/next" "$2" >"$work/log"
}

prepare_root() {
    [ ! -e "$work/base/usr" ] || return 0
    debootstrap --variant=minbase "$suite" "$work/base.new" "$mirror"
    mv "$work/base.new" "$work/base"
}

build_package() {
    scripts/package "$work/package"
}

# In parallel: both mostly wait.
logged "$work/debootstrap.log" prepare_root &
debootstrap=$!
logged "$work/build.log" build_package
wait $debootstrap
deb=$(echo "$work"/package/laterd_*.deb)
root=$work/root
rm -rf "$root"
cp -a "$work/base" "$root"
cp "$deb" "$root/laterd.deb"
next_of "$deb" "$root/laterd-next.deb"
say "built, and a clean $suite made"

cp tests/install/package/clean.sh "$root/tmp/"
if ! inside "$root" sh /tmp/clean.sh | tee "$work/clean.out" || [ "$(grep -c '^ok ' "$work/clean.out")" -ne 5 ]; then
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
