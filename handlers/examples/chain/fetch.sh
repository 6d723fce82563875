#!/bin/sh
# fetch.sh: the first job of the chain in doc/batches.md. Its payload names a file; its result is
# the text of that file, of which the daemon takes 16 KiB.
set -eu
file=$(cat)
[ -r "$file" ] || {
    echo "reason there is no file $file" >&3
    exit 65 # to try again would not help
}
sed 's/^/result /' "$file" >&3
