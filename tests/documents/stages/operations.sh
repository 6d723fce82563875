# shellcheck shell=bash
# A worker, and files to put in place of others.
config() {
    handler mail <<< '#!/bin/sh'
    echo 'concurrency: 2'
}

stage() {
    mkdir -p etc/handlers srv/handlers build
    echo '#!/bin/sh' > mail.new
    keep WORKER "$(later workers --json | jq -r .worker)"
}
