#!/bin/bash
# Boots a Debian root under its own systemd, in two ways at the same time, and runs checks there.
# Usage: tests/install/boot/run.sh ROOT WORK     WORK: a folder for logs, disk and results
#
# ROOT has /laterd.deb and /laterd-next.deb; more packages are installed into it. Each function check_NAME of a file
# here is one check. guest.sh runs them as root in the order of the file, and each must print "ok".
#
#   container*.sh  in a container of systemd-nspawn: a real systemd at the speed of this machine, with the cgroups
#                  of this kernel. If it does not boot, these checks run in the virtual machine, too
#   machine*.sh    in a virtual machine with a kernel of its own: cgroup v2 with all controllers. It uses KVM, or
#                  else an emulated processor, on which everything takes ten times as long
#
# LATER_BOOT_ONLY='check_boot check_x' runs only these. The machine has one disk, made from a folder without
# mounting, no network, and two serial ports: the first for kernel and systemd, the second for the checks.
set -euo pipefail
cd "$(dirname "$0")"
root=$1
work=$2
CONTAINER_S=240
MACHINE_S=400
begin=$SECONDS

say() { echo "boot: $* ($((SECONDS - begin)) s)"; }

# Make the root bootable and install what the checks need.
fill() {
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" sh -euc '
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C
        kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n "s/.*Depends: \(linux-image[^ ]*\).*/\1/p")
        cd /tmp && apt-get -q download "$kernel"
        apt-get -q install -y --no-install-recommends systemd-sysv redis-server python3 nodejs curl msmtp-mta procps libcmocka0 \
            /laterd.deb'
    rm "$root/usr/sbin/policy-rc.d"
    rm -rf "$work/kernel"
    dpkg -x "$root"/tmp/linux-image-*.deb "$work/kernel"
    rm -f "$root"/tmp/linux-image-*.deb "$root"/var/cache/apt/archives/*.deb
    # Compile the C example here; there is no compiler inside.
    musl-gcc -static -O1 -D_GNU_SOURCE -o "$root/opt/stream" "$root/usr/share/laterd/handlers/examples/stream.c"
    # A test program that this machine's kernel may not support.
    mkdir "$root/opt/later"
    cp ../../../laterd ../../integration/test_cgroup "$root/opt/later/"
    cp "$root/etc/laterd/laterd.yaml" "$root/etc/laterd/laterd.yaml.dist"
    # No logins: nothing must wait for a terminal to be found.
    ln -sf /dev/null "$root/etc/systemd/system/getty.target"
    : >"$root/etc/machine-id"
    cat >"$root/etc/systemd/system/checks.service" <<'END'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /opt/boot/guest.sh
TimeoutStartSec=infinity
END
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    ln -sf ../checks.service "$root/etc/systemd/system/multi-user.target.wants/checks.service"
}

names_of() { # FILE...
    local name
    for name in $(sed -n 's/^\(check_[a-z0-9_]*\)().*/\1/p' "$@"); do
        case " ${LATER_BOOT_ONLY-$name} " in *" $name "*) echo "$name" ;; esac
    done
}

# prepare ROOT FILE...: put the checks of these files into ROOT
prepare() {
    local to=$1/opt/boot
    shift
    rm -rf "$to"
    mkdir -p "$to"
    cp guest.sh lib.sh "$@" "$to"
    names_of "$@" >"$to/names"
}

# judge OUT FILE...: show the output; fails unless every check of these files is ok
judge() {
    local out=$1 name missing=0 n=0
    shift
    tr -d '\r' <"$out" 2>/dev/null | cat -v >"$out.text" || true
    cat "$out.text"
    for name in $(names_of "$@"); do
        n=$((n + 1))
        grep -q "^ok $name " "$out.text" || {
            echo "boot: FAILED or missing: $name"
            missing=1
        }
    done
    [ $missing -ne 0 ] || say "$n checks"
    return $missing
}

# Boot the container. Succeeds if the output of the checks is there, in container.out.
container() {
    local inside=$work/container
    rm -rf "$inside" "$work/container.out"
    cp -a "$root" "$inside"
    prepare "$inside" container*.sh
    timeout -k 10 $CONTAINER_S systemd-nspawn --quiet --directory="$inside" --register=no --keep-unit \
        --private-network --link-journal=no --console=pipe --boot >"$work/container.log" 2>&1 </dev/null || true
    cp "$inside/opt/boot/out" "$work/container.out"
}

qemu() { # CONSOLE CHECKS OPTION...
    local console=$1 checks=$2
    shift 2
    exec qemu-system-x86_64 -m 1024 -smp 2 -nodefaults -display none -no-reboot \
        -drive "file=$work/disk,format=raw,if=none,id=disk,cache=unsafe" -device nvme,drive=disk,serial=disk \
        -serial "file:$console" -serial "file:$checks" -kernel "$work"/kernel/boot/vmlinuz-* \
        -append 'root=/dev/nvme0n1 rw console=ttyS0 panic=-1 mitigations=off systemd.show_status=0' "$@"
}
kvm='-accel kvm -cpu host,arch-capabilities=off'
emulated='-accel tcg,thread=multi,tb-size=256 -cpu max'

# On some hosts /dev/kvm exists, but a kernel in it never prints a line.
kvm_works() {
    local pid status=1
    [ -w /dev/kvm ] || return 1
    rm -f "$work/kvm.out"
    # shellcheck disable=SC2086 # options are words
    qemu "$work/kvm.out" /dev/null $kvm -snapshot >/dev/null 2>&1 &
    pid=$!
    for _ in $(seq 50); do
        ! grep -q 'Linux version' "$work/kvm.out" 2>/dev/null || { status=0; break; }
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
    return $status
}

# Boot the machine. The output of the checks is in machine.out.
machine() { # FILE...
    local options=$emulated pid ticks=0
    prepare "$root" "$@"
    rm -f "$work/disk" "$work/machine.out"
    mke2fs -q -t ext4 -O ^has_journal -d "$root" "$work/disk" 2G >"$work/machine.log" 2>&1
    ! kvm_works || options=$kvm
    say "the machine boots with $options"
    # shellcheck disable=SC2086 # options are words
    qemu "$work/machine.console" "$work/machine.out" $options 2>>"$work/machine.log" &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ $ticks -lt $MACHINE_S ]; do
        sleep 1
        ticks=$((ticks + 1))
    done
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
}

fill >"$work/fill.log" 2>&1 || {
    tail -n 40 "$work/fill.log"
    exit 1
}
say 'a system that boots is there'
# If neither boots, at least test the notifications to systemd on a socket.
notify_instead() {
    say 'NOT TESTED: nothing boots here, neither systemd-nspawn nor a machine; the notify protocol on a socket instead'
    tail -n 5 "$work/container.log" "$work/machine.log"
    cd ../../.. && LATER_BUILD_DIR=$PWD LATER_SOURCE_DIR=$PWD LATER_ONLY='L1[47]_*' tests/fault/test_life
}
has_booted() { grep -q 'systemd\[1\]' "$work/machine.console" 2>/dev/null; }

status=0
machines=$(echo machine*.sh)
rm -f "$work/machine.console" "$work"/*.out
container || true &
container=$!
# shellcheck disable=SC2086 # names are words
[ -z "$(names_of $machines)" ] || machine $machines
wait $container
if [ ! -s "$work/container.out" ]; then
    has_booted || [ -z "$(names_of $machines)" ] || { notify_instead; exit; }
    say 'systemd-nspawn does NOT boot here: its checks run in the machine'
    tail -n 5 "$work/container.log"
    mv "$work/machine.out" "$work/machine.first" 2>/dev/null || true
    machine container*.sh
    mv "$work/machine.out" "$work/container.out"
    mv "$work/machine.first" "$work/machine.out" 2>/dev/null || true
fi
judge "$work/container.out" container*.sh || status=1
# shellcheck disable=SC2086
if [ -n "$(names_of $machines)" ]; then
    if ! has_booted; then
        say "NOT TESTED: $(names_of $machines | tr '\n' ' '): no machine boots here"
    elif ! judge "$work/machine.out" $machines; then
        status=1
        tail -n 15 "$work/machine.console" "$work/machine.log"
    fi
fi
exit $status
