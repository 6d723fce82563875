#!/bin/sh
# Tests the arithmetic, tables and arguments of the benchmarks; measures nothing. Skipped (77) without Python.
set -eu
command -v python3 > /dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 exec python3 "${LATER_SOURCE_DIR:-$(dirname "$0")/../..}/bench/test_suite.py"
