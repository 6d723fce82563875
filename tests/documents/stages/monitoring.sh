# shellcheck shell=bash
. "$STAGES/held.sh"

stage() {
    held
    in_state dead "$(later add mail dead)"
    mkdir -p node-exporter
}
