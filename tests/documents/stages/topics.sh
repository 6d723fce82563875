# shellcheck shell=bash
# Two workers serve the queue of the broadcast.
config() {
    handler reload <<< '#!/bin/sh'
    echo 'concurrency: 2'
}

stage() { second; }
