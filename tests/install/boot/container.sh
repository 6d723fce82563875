# Checks of the service under a real systemd (lib.sh, run.sh).

# As installed by the package: enabled, running, and no unit has failed.
check_boot() {
    systemctl is-enabled laterd
    until_true 40 systemctl is-active laterd
    until_ready
    [ -z "$(systemctl --failed --no-legend --plain 'laterd*' 'redis*')" ]
    [ "$(ps -o user= -p "$(main_pid)")" = laterd ]
}

check_status_counts() {
    echo 'sleep 4' | handler slow
    configure </etc/laterd/laterd.yaml.dist
    local id
    id=$(add slow x)
    until_true 20 is_status 'ready, 1 of 16 running'
    systemctl status laterd --no-pager | grep 'Status: "ready, 1 of 16 running'
    wait_done "$id"
    until_true 20 is_status 'ready, 0 of 16 running'
}

check_reload() {
    configure </etc/laterd/laterd.yaml.dist
    local pid
    pid=$(main_pid)
    echo 'stop_timeout: 7s' >>/etc/laterd/laterd.yaml
    systemctl reload laterd
    until_true 10 journal_has 'event=reload result=done'
    sed -i 's/^stop_timeout: /stop_timeoot: /' /etc/laterd/laterd.yaml
    if systemctl reload laterd; then return 1; fi
    sed -i 's/^stop_timeoot: /stop_timeout: /' /etc/laterd/laterd.yaml
    until_true 10 journal_has 'laterd.yaml:.*stop_timeoot.*did you mean'
    systemctl is-active laterd
    [ "$(main_pid)" = "$pid" ]
    echo 'echo good' | handler greets
    wait_done "$(add greets x)"
}

# A frozen daemon: systemd kills and restarts it, and its job runs again.
check_watchdog() {
    configure </etc/laterd/laterd.yaml.dist
    printf '[Service]\nWatchdogSec=4s\n' | drop_in
    echo 'echo x >>/var/lib/laterd/frozen; [ "$(wc -l </var/lib/laterd/frozen)" -gt 1 ] || sleep 100' | handler frozen
    local pid next id
    pid=$(main_pid)
    id=$(add frozen x)
    until_true 20 is_status ' 1 of 16 running'
    kill -STOP "$pid"
    until_true 40 journal_has 'Watchdog timeout'
    # Asked once: between two answers the service may go away.
    until_true 40 eval 'next=$(main_pid); [ "$next" != 0 ] && [ "$next" != "$pid" ]'
    until_ready
    [ "$(systemctl show -P NRestarts laterd)" = 1 ]
    wait_done "$id"
}

# A handler that ignores TERM and the process that it left behind are ended in time. The job is not lost.
check_stop_in_time() {
    { cat /etc/laterd/laterd.yaml.dist; echo 'stop_timeout: 1s'; } | configure
    echo '[ "$LATER_ATTEMPT" = 1 ] && [ ! -e /var/lib/laterd/deaf ] || exit 0
        : >/var/lib/laterd/deaf; trap "" TERM; setsid sleep 1000 & while :; do sleep 1; done' | handler deaf
    local id begin
    id=$(add deaf x)
    until_true 20 test -e /var/lib/laterd/deaf
    begin=$(date +%s)
    systemctl stop laterd
    [ $(($(date +%s) - begin)) -lt 30 ]
    [ "$(systemctl show -P Result laterd)" = success ]
    [ "$(systemctl show -P ExecMainStatus laterd)" = 0 ]
    until_true 5 eval '! pgrep -u laterd'
    systemctl start laterd
    wait_done "$id"
}

# The default unit lacks the rights that `user:` needs, and laterd says so; users.conf grants them.
check_users() {
    echo 'id -un; [ "$(id -un)" = nobody ] && ! cat /etc/credstore/laterd.redis-password' | handler who
    configure </etc/laterd/laterd.yaml.dist
    printf 'queues:\n  who: { user: nobody }\n' >>/etc/laterd/laterd.yaml
    if systemctl reload laterd; then return 1; fi
    until_true 10 journal_has 'who.*user'
    drop_in </usr/share/laterd/systemd/users.conf
    wait_done "$(add who x)"
}

check_strict() {
    configure </etc/laterd/laterd.yaml.dist
    cp /usr/share/laterd/handlers/hello /etc/laterd/handlers/
    drop_in </usr/share/laterd/systemd/strict.conf
    wait_done "$(add hello x)"
}

# Each example worker under the default unit.
check_examples() {
    local kind
    {
        cat /etc/laterd/laterd.yaml.dist
        echo 'defaults: { start_timeout: 60s }'
        echo 'queues:'
        for kind in sh py pl js; do
            echo "  e$kind: { mode: stream, handler: [/usr/share/laterd/handlers/examples/stream.$kind] }"
        done
        echo '  ec: { mode: stream, handler: [/opt/stream] }'
    } | configure
    for kind in sh py pl c; do wait_done "$(add e$kind 'two words')"; done
    wait_done "$(add ejs 'two words')" # node generates code in memory
    cp /usr/share/laterd/handlers/hello /etc/laterd/handlers/
    wait_done "$(add hello 'good morning')"
}

check_webhook() {
    configure </etc/laterd/laterd.yaml.dist
    cp /usr/share/laterd/handlers/webhook /etc/laterd/handlers/
    cat >/tmp/hook.py <<'END'
import http.server
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("/tmp/hook.out", "ab").write(body + b" " + self.headers["X-Later-Id"].encode() + b"\n")
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8080), Hook).serve_forever()
END
    systemd-run --unit=hook -q python3 /tmp/hook.py
    until_true 40 curl -s -o /dev/null http://127.0.0.1:8080/
    install -m 640 -g laterd /usr/share/doc/laterd/webhook.conf /etc/laterd/webhook.conf
    local id
    id=$(add webhook '{"order":42}')
    wait_done "$id"
    grep -F "{\"order\":42} $id" /tmp/hook.out
}

# /usr/sbin/sendmail is a real mail program that speaks SMTP.
check_sendmail() {
    configure </etc/laterd/laterd.yaml.dist
    printf 'exec /usr/sbin/sendmail -t\n' | handler mail
    printf 'account default\nhost 127.0.0.1\nport 2525\nfrom laterd@example.org\n' >/etc/msmtprc
    systemd-run --unit=sink -q -p StandardOutput=file:/tmp/sink.out \
        python3 -W ignore -u -m smtpd -n -c DebuggingServer 127.0.0.1:2525
    until_true 40 grep -q ':09DD .* 0A ' /proc/net/tcp # port 2525 listens
    wait_done "$(printf 'To: a@example.org\nSubject: later\n\nThe letter.\n' | add mail -)"
    grep 'The letter' /tmp/sink.out
}

# laterd gets a systemd credential; handlers do not see it.
check_credential() {
    mkdir -p /etc/credstore
    (umask 077 && echo s3cret >/etc/credstore/laterd.redis-password)
    redis-cli config set requirepass s3cret
    { cat /etc/laterd/laterd.yaml.dist; echo 'defaults: { env_pass: ["*"] }'; } | configure
    printf 'if env | grep -e CREDENTIALS -e s3cret; then exit 65; fi\n' | handler looks
    REDISCLI_AUTH=s3cret wait_done "$(REDISCLI_AUTH=s3cret add looks x)"
    rm -r /etc/credstore
    redis-cli -a s3cret config set requirepass ''
}

# Producers can add while laterd is stopped. Redis keeps the acknowledged jobs when it is killed.
check_laterd_redis() {
    echo 'echo good' | handler greets
    systemctl enable --now laterd-redis
    sed 's|^redis:.*|redis: unix:/run/laterd-redis/redis.sock|' /etc/laterd/laterd.yaml.dist | configure
    local id other
    wait_done "$(add greets x)"
    systemctl stop laterd
    systemctl is-active laterd-redis
    id=$(add greets 'while it is away')
    systemctl kill -s KILL laterd-redis
    until_true 40 later cli PING
    [ "$(stat -c '%U:%G %a' /run/laterd-redis/redis.sock)" = 'laterd:laterd 770' ]
    if setpriv --reuid=nobody --clear-groups redis-cli -s /run/laterd-redis/redis.sock ping; then return 1; fi
    for other in appendonly:yes appendfsync:everysec maxmemory-policy:noeviction port:0; do
        later cli config get "${other%:*}" | grep -x "${other#*:}"
    done
    later cli config get notify-keyspace-events | grep -E '^(Kz|zK)$'
    systemctl start laterd
    wait_done "$id"
    configure </etc/laterd/laterd.yaml.dist
    systemctl disable --now laterd-redis
}

# A second daemon (instance x) with its own configuration, state folder and namespace.
check_instance() {
    configure </etc/laterd/laterd.yaml.dist
    echo 'echo good' | handler greets
    { sed 's|^state_dir:.*||' /etc/laterd/laterd.yaml.dist; echo 'namespace: x'; } >/etc/laterd/x.yaml
    systemctl enable --now laterd@x
    until_ready laterd@x
    [ "$(stat -c '%U %a' '/var/lib/laterd@x')" = 'laterd 700' ]
    ls '/var/lib/laterd@x'
    LATER_CONFIG=/etc/laterd/x.yaml
    wait_done "$(add greets x)"
    journal_has 'queue=greets' laterd@x
    echo 'nonsense: 1' >>/etc/laterd/x.yaml
    if systemctl reload laterd@x; then return 1; fi
    sed -i '/nonsense/d' /etc/laterd/x.yaml
    systemctl reload laterd@x
    systemctl is-active laterd laterd@x
    # A shard, by the file of all of them.
    { sed 's|^state_dir:.*||' /etc/laterd/laterd.yaml.dist; printf 'namespace: y\nshards: 2\n'; } >/etc/laterd/y.yaml
    systemctl enable --now laterd@y.1
    until_ready laterd@y.1
    systemctl reload laterd@y.1
    [ "$(later --config /etc/laterd/y.yaml --namespace y.1 add greets --wait y)" = good ]
    later --config /etc/laterd/y.yaml health --ready
    systemctl disable --now laterd@y.1
}

# Upgrade while a job runs: it runs again. Instances are restarted, too.
check_upgrade() {
    { cat /etc/laterd/laterd.yaml.dist; echo 'stop_timeout: 1s'; } | configure
    echo 'echo x >>/var/lib/laterd/runs; [ "$(wc -l </var/lib/laterd/runs)" -gt 1 ] || sleep 1000' | handler long
    local id pid other
    id=$(add long x)
    until_true 20 test -e /var/lib/laterd/runs
    pid=$(main_pid)
    other=$(systemctl show -P MainPID laterd@x)
    dpkg -i /laterd-next.deb
    [ "$(main_pid)" != "$pid" ]
    [ "$(systemctl show -P MainPID laterd@x)" != "$other" ]
    systemctl is-active laterd@x
    wait_done "$id"
    [ "$(wc -l </var/lib/laterd/runs)" = 2 ]
    grep stop_timeout /etc/laterd/laterd.yaml
}

check_purge() {
    rm -rf /etc/systemd/system/laterd.service.d
    dpkg --purge laterd
    if pgrep -u laterd; then return 1; fi
    [ -z "$(systemctl list-units --all --no-legend --plain 'laterd*')" ]
    [ -z "$(ls -d /var/lib/laterd* /run/laterd* 2>/dev/null)" ]
    ls -R /etc/laterd
    [ ! -e /etc/laterd/laterd.yaml ] && [ ! -e /etc/laterd/redis.conf ] && [ -e /etc/laterd/x.yaml ]
    find /etc/systemd -name 'laterd*' | { ! grep .; }
}
