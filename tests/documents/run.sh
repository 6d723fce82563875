#!/bin/sh
# The commands of the README and of the tutorial, typed as they stand there (run.py).
set -eu
command -v python3 > /dev/null && command -v redis-cli > /dev/null || { echo "python3 or redis-cli is missing"; exit 77; }
source=$(cd "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}" && pwd)
cd "${LATER_BUILD_DIR:-$source}"
PYTHONDONTWRITEBYTECODE=1 exec python3 "$source/tests/documents/run.py" "$source/README.md:2" "$source/doc/tutorial.md"
