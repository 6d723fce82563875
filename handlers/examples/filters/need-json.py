#!/usr/bin/env python3
"""need-json.py: a filter (doc/handlers.md). Only a JSON object comes to the handler, unchanged."""
import json
import os
import sys


def refuse(why):
    control = int(os.environ["LATER_CONTROL_FD"])
    os.write(control, b"reason %s\n" % why.encode())
    sys.exit(65)  # to try again would not help


try:
    payload = json.load(sys.stdin.buffer)
except ValueError as e:  # of what is no UTF-8, too
    refuse(f"no JSON: {e}")
if not isinstance(payload, dict):
    refuse("no JSON object")
