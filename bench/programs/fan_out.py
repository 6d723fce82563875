#!/usr/bin/python3
"""A handler that adds as many jobs to its batch as its payload says, in queue bench."""
import os
import sys

n = int(sys.stdin.read())
line = f"add bench batch {os.environ['LATER_BATCH']} -- {'x' * 100}\n".encode()
with os.fdopen(3, "wb") as control:
    control.write(line * n)
