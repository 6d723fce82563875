#!/usr/bin/env python3
"""dispatch.py: gives an order to the nearest free courier (doc/dispatch.md).

The payload: {"order": "o17", "longitude": 13.4, "latitude": 52.5}. Redis has the couriers in the
geo set `couriers`. A courier is free unless somebody holds the lock courier:NAME. The program in
our arguments does the delivery under that lock, as PROGRAM COURIER ORDER. Nobody is free in the
circle: the next attempt, RETRY_IN later, has one of twice the radius.
"""
import json
import os
import re
import shlex
import subprocess
import sys

FIRST_KM = float(os.environ.get("FIRST_KM", "1"))
LAST_KM = float(os.environ.get("LAST_KM", "32"))
RETRY_IN = os.environ.get("RETRY_IN", "10s")
REDIS_CLI = shlex.split(os.environ.get("REDIS_CLI", "redis-cli"))
MOST = 40  # couriers that are looked at: `later gates` asks for as many gates at one instant
LOOKS = 5  # where others are quicker each time, somebody else is served first
TAKEN = 111  # what `later lock` says when the lock is taken


def end(status, reason):
    os.write(3, f"reason {reason}\n".encode())
    sys.exit(status)


def try_again(reason):
    os.write(3, f"retry-in {RETRY_IN}\n".encode())
    end(75, reason)


def output(argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        end(1, f"{argv[0]} failed with status {done.returncode}")
    return done.stdout.decode()


def read_order():
    try:
        payload = json.load(sys.stdin.buffer)
        order = str(payload["order"])
        lon, lat = float(payload["longitude"]), float(payload["latitude"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as e:
        end(65, f"no order: {e!r}")
    if not re.fullmatch(r"\w[\w.:-]{0,99}", order, re.ASCII):
        end(65, f"no order: its name is {order!r}")
    if not (abs(lon) <= 180 and abs(lat) <= 85):
        end(65, f"no order: nobody drives to {lon:g}, {lat:g}")
    return order, lon, lat


def nearest_free(lon, lat, km):
    """The couriers of the circle by their distance; the locks of them all at one instant."""
    circle = f"FROMLONLAT {lon!r} {lat!r} BYRADIUS {km!r} km ASC COUNT {MOST}"
    couriers = output(REDIS_CLI + ["-e", "--raw", "GEOSEARCH", "couriers"] + circle.split()).split()
    if not couriers:
        return None
    gates = output(["later", "--json", "gates"] + ["lock:courier:" + c for c in couriers])
    held = {g["name"] for g in map(json.loads, gates.splitlines()) if g["held"]}
    return next((c for c in couriers if "courier:" + c not in held), None)


order, lon, lat = read_order()
km = min(FIRST_KM * 2 ** min(int(os.environ["LATER_ATTEMPT"]) - 1, 20), LAST_KM)
for _ in range(LOOKS):
    courier = nearest_free(lon, lat, km)
    if courier is None:
        try_again(f"nobody is free within {km:g} km")
    # The lock is held while the program runs, and is free again whatever ends it.
    status = subprocess.call(["later", "lock", "-n", "-E", str(TAKEN), "courier:" + courier, "--"] +
                             sys.argv[1:] + [courier, order])
    if status != TAKEN:
        sys.exit(status)
try_again("others were quicker")
