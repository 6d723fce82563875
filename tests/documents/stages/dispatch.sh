# shellcheck shell=bash
# The server at the usual address is in the file of the user, where the handler's `later` finds it.
export HOME=$WORLD

stage() {
    mkdir .config
    echo "redis: unix:$WORLD/redis.sock" > .config/later.yaml
}
