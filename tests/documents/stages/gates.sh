# shellcheck shell=bash
. "$STAGES/held.sh"

stage() {
    held
    stub make restart ffmpeg backup curl
    keep LATER_FENCE "$(redis-cli --raw FCALL later_lock 1 'later:{default}' report h.1 ttl 1m | sed -n 2p)"
    keep result done
}
