# Sourced by tests/install/package.sh and scripts/on-debian: another Debian in a folder.

# Run a command in the root, with pids and mounts of its own. They end with the command. The root becomes
# that of the mounts: in a chroot alone the kernel allows no namespaces of users, which some tests make.
inside() { # ROOT COMMAND...
    local root=$1
    shift
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --pid --fork --kill-child bash -c '
        mount --bind "$0" "$0" && cd "$0" && mount -t proc proc proc && mount --rbind /sys sys &&
            mount -t tmpfs -o mode=755 tmpfs dev && mkdir dev/pts dev/shm &&
            mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts && ln -s pts/ptmx dev/ptmx &&
            mount -t tmpfs -o mode=1777 tmpfs dev/shm && ln -s /proc/self/fd dev/fd &&
            ln -s fd/0 dev/stdin && ln -s fd/1 dev/stdout && ln -s fd/2 dev/stderr || exit 1
        for node in null zero full urandom random tty; do
            touch "dev/$node" && mount --bind "/dev/$node" "dev/$node" || exit 1
        done
        pivot_root . . && umount -l . && cd / && exec "$@"' "$root" "$@"
}

# A minimal Debian. Half of one is never left in its place.
make_root() { # SUITE ROOT MIRROR
    [ ! -e "$2/usr" ] || return 0
    rm -rf "$2.new"
    debootstrap --variant=minbase "$1" "$2.new" "$3" && mv "$2.new" "$2"
}

# Make the same package with a higher version, to upgrade to.
next_of() { # DEB TO WORK
    local version
    version=$(dpkg-deb -f "$1" Version)
    rm -rf "$3/next"
    dpkg-deb -R "$1" "$3/next"
    sed -i "s/^Version: .*/Version: $version+next/" "$3/next/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$3/next" "$2" >/dev/null
}
