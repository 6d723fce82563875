#!/bin/sh
# The benchmarks' own arithmetic, tables and arguments; nothing is measured. Skipped (77) without Python.
set -eu
command -v python3 > /dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 exec python3 "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}/bench/test_suite.py"
