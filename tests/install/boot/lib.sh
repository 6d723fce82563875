# Functions for the checks. They run as root in a machine of their own, one after the other, under
# `set -e`. A check finds what earlier ones left in /etc/laterd, so it begins with `configure`.

# Poll until the command succeeds; fails after SECONDS.
until_true() { # SECONDS COMMAND...
    local end=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# Write standard input to /etc/laterd/laterd.yaml, remove drop-ins, restart laterd, wait until it is ready.
configure() {
    cat >/etc/laterd/laterd.yaml
    rm -rf /etc/systemd/system/laterd.service.d
    systemctl daemon-reload
    systemctl restart laterd
    until_ready
}

# Like `systemctl edit`: standard input becomes a drop-in; restart laterd and wait.
drop_in() {
    mkdir -p /etc/systemd/system/laterd.service.d
    cat >/etc/systemd/system/laterd.service.d/test.conf
    systemctl daemon-reload
    systemctl restart laterd
    until_ready
}

is_status() { systemctl show -P StatusText "${2-laterd}" | grep -q "$1"; } # PATTERN [UNIT]
until_ready() { until_true 40 is_status '^ready' "${1-laterd}"; }
main_pid() { systemctl show -P MainPID laterd; }
journal_has() { journalctl -q -b --no-pager -o cat -u "${2-laterd}" | grep -q -e "$1"; } # PATTERN [UNIT]

# Make a handler NAME: a shell script with the lines of standard input.
handler() {
    { echo '#!/bin/sh'; cat; } >/etc/laterd/handlers/"$1"
    chmod 755 /etc/laterd/handlers/"$1"
}

# later add, with the outcome kept. Prints only the id.
add() { later ${LATER_CONFIG:+--config "$LATER_CONFIG"} add "$@" --keep 1h | grep -o 'j[0-9a-z]\{11\}' | head -n 1; }
# Succeeds if the job is done within a minute.
wait_done() { later ${LATER_CONFIG:+--config "$LATER_CONFIG"} wait "$1" --timeout 60s; }
