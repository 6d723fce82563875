# Checks that need a kernel of their own with cgroup v2 (lib.sh, run.sh). The others are in container.sh.

check_machine_boot() {
    [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]
    grep -w memory /sys/fs/cgroup/cgroup.controllers
    until_ready
    [ "$(ps -o user= -p "$(main_pid)")" = laterd ]
}

# The sandbox of the default unit, under a kernel that supports all of it.
check_machine_job() {
    echo '! (: >/etc/written) && ! (: >/usr/written) && (: >"$HOME/written") && grep -q "^NoNewPrivs:.*1" /proc/self/status' |
        handler tries
    wait_done "$(add tries x)"
    until_true 20 is_status 'ready, 0 of 16 running'
    systemctl status laterd --no-pager
}
