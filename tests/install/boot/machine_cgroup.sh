# Checks of cgroups for jobs, delegated by systemd (lib.sh, run.sh).

# A job over its memory limit is killed, and its outcome says why. Another job is done, and laterd does not grow.
check_machine_memory() {
    echo 'exec tail /dev/zero' | handler hungry
    echo 'until [ -e /var/lib/laterd/fed ]; do sleep 0.2; done' | handler calm
    configure </etc/laterd/laterd.yaml.dist
    printf 'defaults: { memory: 48MiB, pids: 50, cpu: 90%% }\nqueues:\n  hungry: { attempts: 1 }\n' >>/etc/laterd/laterd.yaml
    # The default unit delegates nothing, and laterd says so.
    if systemctl reload laterd; then return 1; fi
    until_true 10 journal_has ': laterd.s cgroup .*cgroups.conf'
    drop_in </usr/share/laterd/systemd/cgroups.conf
    local calm before
    calm=$(add calm x)
    until_true 20 is_status ' 1 of 16 running'
    before=$(awk '/^VmRSS/ { print $2 }' "/proc/$(main_pid)/status")
    later wait "$(add hungry x)" --timeout 60s >/tmp/hungry.out 2>&1 || true
    later ls hungry --state dead | grep 'over memory limit (48MiB): killed by signal 9'
    touch /var/lib/laterd/fed
    wait_done "$calm"
    [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$(main_pid)/status")" -lt $((before + 2048)) ]
    [ "$(systemctl show -P NRestarts laterd)" = 0 ]
    until_true 10 eval '! ls -d /sys/fs/cgroup/system.slice/laterd.service/job.*'
    systemctl reload laterd
    systemctl status laterd --no-pager
}

# Run tests/integration/test_cgroup here.
check_machine_cgroup_tests() {
    configure </etc/laterd/laterd.yaml.dist
    cd /opt/later
    LATER_BUILD_DIR=$PWD LATER_SOURCE_DIR=$PWD ./test_cgroup
}
