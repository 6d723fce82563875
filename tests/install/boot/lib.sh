# What the checks have in common. They run as root in a machine of their own, one after the
# other, under `set -e`; what one leaves in /etc/laterd the next one finds: begin with `configure`.

# Poll until the command is true; fails when it is not in time.
until_true() { # SECONDS COMMAND...
    local end=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$end" ] || return 1
        sleep 0.1
    done
}

# /etc/laterd/laterd.yaml is standard input, no drop-ins, laterd runs with it and is connected.
configure() {
    cat >/etc/laterd/laterd.yaml
    rm -rf /etc/systemd/system/laterd.service.d
    systemctl daemon-reload
    systemctl restart laterd
    until_ready
}

# As `systemctl edit`: standard input is a drop-in.
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

# A handler NAME, a shell script from standard input.
handler() {
    { echo '#!/bin/sh'; cat; } >/etc/laterd/handlers/"$1"
    chmod 755 /etc/laterd/handlers/"$1"
}

# later add, of which only the id is printed. The outcome is kept.
add() { later ${LATER_CONFIG:+--config "$LATER_CONFIG"} add "$@" --keep 1h | grep -o 'j[0-9a-z]\{11\}' | head -n 1; }
# The job ends well in a minute.
wait_done() { later ${LATER_CONFIG:+--config "$LATER_CONFIG"} wait "$1" --timeout 60s; }
