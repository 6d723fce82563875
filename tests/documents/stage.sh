# shellcheck shell=bash
# What every command of a document finds (run.py reads this before each one). WORLD: the folder of this document.
# A stage may define `config`, which makes handlers and prints what laterd.yaml has besides the server (nothing: no
# laterd), and `stage`, which puts there what the document tells of. It keeps variables by `keep`.
TREE=$PWD
STAGES=${BASH_SOURCE[0]%/*}/stages
SOURCE=$STAGES/../../..
mkdir -p "$WORLD/bin"
ln -sf "$TREE/later" "$TREE/laterd" "$WORLD/bin"
export PATH="$WORLD/bin:$PATH" TMPDIR="$WORLD"

export HOME=$WORLD
unset REDISCLI_AUTH "${!LATER@}"

in_world() { # the rest of this file is for documents without a Redis of their own
    cd "$WORLD" || exit
    export LATER_REDIS_URL="unix:$WORLD/redis.sock"
    [ ! -r kept ] || . "$WORLD/kept"
}

keep() { # NAME VALUE
    printf '%s=%q\n' "$1" "$2" >> "$WORLD/kept"
}

redis-cli() { # as on a terminal, and a refusal is a failure
    case ${1-} in
    -s) command redis-cli -e --no-raw "$@" ;;
    *) command redis-cli -s "$WORLD/redis.sock" -e --no-raw "$@" ;;
    esac
}

later() { # what asks is answered, and what goes on is ended
    case "$*" in
    *--dry-run* | *--yes*) command later "$@" ;;
    purge*) echo y | script -qec "$(printf '%q ' later "$@")" /dev/null ;;
    tail*) timeout --preserve-status -s INT 1 later "$@" || [ $? -eq 130 ] ;;
    *) command later "$@" ;;
    esac
}

FCALL() {
    redis-cli FCALL "$@"
}

stub() { # NAME...: programs of the reader's, which do nothing
    local name
    for name; do ln -s /bin/true "$WORLD/bin/$name"; done
}

handler() { # NAME: a handler, from standard input
    cat > "handlers/$1"
    chmod 755 "handlers/$1"
}

second() { # one more laterd
    sed "s,state_dir: .*,&2," laterd.yaml > second.yaml
    laterd --config second.yaml > second.log 2>&1 &
    echo $! > second.pid
    until grep -q event=registered second.log; do sleep 0.05; done
}

in_state() { # STATE ID: wait until the job is in this state
    local i
    for ((i = 0; i < 600; i++)); do
        ! later show "$2" | grep -q "^state  *$1" || return 0
        sleep 0.1
    done
    echo "job $2 is not $1" >&2
    return 1
}

config() { :; }
stage() { :; }
on_stage() { (set -eu; stage); }

raise() {
    local name
    set -eu
    for name in redis other; do
        command redis-server --port 0 --unixsocket "$WORLD/$name.sock" --save '' --daemonize yes \
            --pidfile "$WORLD/$name.pid" --dir "$WORLD" > /dev/null
    done
    for name in redis other; do
        until later --redis "unix:$WORLD/$name.sock" setup > /dev/null 2>&1; do sleep 0.05; done
    done
    mkdir -m 755 handlers
    config > queues
    [ ! -s queues ] || {
        printf '%s\n' "redis: unix:$WORLD/redis.sock" "state_dir: $WORLD/state" "handlers_dir: $WORLD/handlers"
        cat queues
    } > laterd.yaml
}

fall() {
    local name i
    [ ! -r second.pid ] || kill "$(cat second.pid)"
    for name in redis other; do
        [ ! -S "$name.sock" ] || command redis-cli -s "$name.sock" shutdown nosave
        for ((i = 0; i < 600; i++)); do
            [ -e "$name.sock" ] || pgrep -F second.pid || break
            sleep 0.05
        done
    done
}
