"""Drives clients/python/later.py for test_thin_clients.c: drive.py WHAT [ARGUMENT...]"""

import os
import sys

import redis
from later import Later, LaterError, Mistake, NotAllowed, Temporary

KINDS = {Temporary: "temporary", NotAllowed: "not allowed", Mistake: "mistake", LaterError: "other"}


def connect(**more):
    port = os.environ.get("REDIS_PORT")
    where = {"port": int(port)} if port else {"unix_socket_path": os.environ["REDIS_SOCKET"]}
    return redis.Redis(
        **where,
        username=os.environ.get("REDIS_USER", "manager"),
        password=os.environ["REDISCLI_AUTH"],
        socket_timeout=float(os.environ.get("TIMEOUT", "30")),
        **more,
    )


later = Later(connect())


def told(call):
    try:
        return call()
    except LaterError as e:
        return f"{e.code} {KINDS[type(e)]}"


def show(outcome):
    if outcome is None or isinstance(outcome, str):
        print(outcome or "none")
        return
    print(outcome.state, outcome.code, outcome.start, outcome.text)
    print(outcome.output.hex())


def bulk():
    payloads = [bytes([k % 256, k // 256]) * 2 for k in range(1000)]
    try:
        for job in later.add_many("mail", payloads, {"in": "1h"}):
            print(job.id, job.status)
    except redis.ConnectionError:
        print("lost")


def add(n, delay="1h"):
    for _ in range(int(n)):
        print(told(lambda: "{0.id} {0.status}".format(later.add("mail", b"x", {"in": delay}))))


def wait(job, seconds):
    show(told(lambda: later.wait(job, float(seconds))))


def look():
    options = {"in": "1h", "keep": "1h", "token": "t", "then": ["first", "second"]}
    job = later.add("mail", "grüße", options)
    print(job.id, job.status, job.due_ms)
    print(later.add("mail", "grüße", options).status)
    show(later.result(job.id))
    show(later.wait(job.id, 0.3))
    print(later.cancel(job.id))
    print(told(lambda: later.cancel(job.id)))
    show(later.wait(job.id, 30))
    print(told(lambda: later.wait("j0000000000a", 30)))


def refuses(**options):
    try:
        Later(connect(**options)).add_many("mail", [b"x"])
    except ValueError as e:
        print(e)


def refused():
    refuses(decode_responses=True)
    refuses(retry=redis.retry.Retry(redis.backoff.NoBackoff(), 3))


globals()[sys.argv[1]](*sys.argv[2:])
