# shellcheck shell=bash
# Installed examples. The server at the usual address is in the file of the user, where the handler's `later` finds it.
export HOME=$WORLD

stage() {
    mkdir -p share/handlers
    cp -r "$SOURCE/handlers/examples" share/handlers
    chmod -R go-w share # as they are installed: laterd runs nothing that others can write
    mkdir .config
    echo "redis: unix:$WORLD/redis.sock" > .config/later.yaml
}
