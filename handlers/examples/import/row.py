#!/usr/bin/env python3
"""One row of an import: a number that is squared. Anything else is dead (exit status 65)."""
import os
import sys

text = sys.stdin.read().strip()
try:
    square = int(text) ** 2
except ValueError:
    os.write(3, f"reason {text!r} is no number\n".encode())
    sys.exit(65)
print(square)
