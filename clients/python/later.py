"""A thin client of laterd over redis-py: copy this file, or install the folder.

    from redis import Redis
    from later import Later
    later = Later(Redis(username="manager", password=PASSWORD, socket_timeout=5))
    job = later.add("mail", b"hello", {"in": "5m", "key": "user:42"})
    print(later.wait(job.id, 600))

Options and values are those of doc/protocol.md; the value of one that is given more than once (`then`) is
a list. Payloads and outputs are bytes; a payload may also be a str, which is sent as UTF-8. An error
reply raises a LaterError. Where the connection is lost or no answer comes in time, the exceptions
of redis-py come through; give it a socket_timeout. Threads may share a Later.
"""

import re
import secrets
import time
from collections import namedtuple
from contextlib import contextmanager

import redis

ASK_AGAIN_SECONDS = 30  # a wait makes sure now and then that the job and the connection are there
ENDED = ("done", "dead", "cancelled")

Job = namedtuple("Job", "id status due_ms")
Outcome = namedtuple("Outcome", "state code when_ms start text output")


class LaterError(Exception):
    """An error reply. code: its first word, as "ELATER_NOJOB", or "ERR" if it has none."""

    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code = code


class Temporary(LaterError):
    """Nothing was done: try again after a while."""


class NotAllowed(LaterError):
    """An operator has to cure it: rights, a password, `later setup`."""


class Mistake(LaterError):
    """It would fail again: the text says why. Also ELATER_NOJOB, where the job has ended."""


TEMPORARY = "LOADING BUSY OOM READONLY MASTERDOWN ELATER_FULL TRYAGAIN CLUSTERDOWN".split()
NOT_ALLOWED = "NOPERM WRONGPASS NOAUTH".split()
# redis-py takes some codes out of the text and has a class for each.
CLASSES = {
    "BusyLoadingError": "LOADING",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "MasterDownError": "MASTERDOWN",
    "TryAgainError": "TRYAGAIN",
    "ClusterDownError": "CLUSTERDOWN",
    "NoPermissionError": "NOPERM",
    "AuthenticationError": "WRONGPASS",  # or NOAUTH
}
REPLIES = (redis.ResponseError, redis.BusyLoadingError, redis.AuthenticationError)


def _error(reply):
    code, text = re.match(r"(?s)(?:([A-Z][A-Z0-9_]+) )?(.*)", str(reply)).groups()
    code = code or CLASSES.get(type(reply).__name__, "ERR")
    if code in TEMPORARY:
        return Temporary(code, text)
    if code in NOT_ALLOWED or text.startswith("Function not found"):
        return NotAllowed(code, text)
    return (Mistake if code.startswith("ELATER_") else LaterError)(code, text)


@contextmanager
def _errors_by_code():
    try:
        yield
    except REPLIES as reply:
        raise _error(reply) from None


def _pairs(options):
    for name, value in (options or {}).items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            yield from (name, one)


def _outcome(state, code, when_ms, start, text, output):
    number = [int(n or 0) for n in (code, when_ms, start)]
    return Outcome(state.decode(), *number, text.decode(errors="backslashreplace"), output)


def _outcome_of_message(data):
    head, _, output = data.partition(b"\n")
    return _outcome(*head.split(b" ", 4), output)


def _job(reply):
    return Job(reply[0].decode(), reply[1].decode(), int(reply[2]))


class Later:
    """The jobs of a namespace. connection: a redis.Redis without decode_responses."""

    def __init__(self, connection, namespace="default"):
        if connection.get_encoder().decode_responses:
            raise ValueError("outputs are bytes: connect without decode_responses")
        self._redis = connection
        self._root = "later:{%s}" % namespace

    def add(self, queue, payload, options=None):
        """-> a Job. If the answer is lost it is asked for once more, with the same token."""
        options = {"token": secrets.token_hex(16), **(options or {})}
        call = ("add", queue, *_pairs(options), payload)
        try:
            return _job(self._call(*call))
        except (redis.ConnectionError, redis.TimeoutError):
            return _job(self._call(*call))

    def add_many(self, queue, payloads, options=None):
        """-> a list of Jobs: all or none, at most 1,000 and 16 MiB. It has no token, so an answer that
        is lost is not asked for again: the jobs may have been added."""
        retry = self._redis.get_connection_kwargs().get("retry")
        if getattr(retry, "_retries", 0) != 0:
            raise ValueError("redis-py would add them again: connect with Retry(NoBackoff(), 0)")
        return [_job(j) for j in self._call("add_many", queue, *_pairs(options), "--", *payloads)]

    def wait(self, job_id, timeout):
        """-> the Outcome once the job has ended, None if it has not after so many seconds. The id is one
        that add gave. ELATER_NOJOB: it has ended, and its outcome was not kept (option keep)."""
        until = time.monotonic() + timeout
        with _errors_by_code(), self._redis.pubsub() as ended:
            ended.subscribe(f"{self._root}:ended:{job_id}")
            while True:
                left = max(0, until - time.monotonic())
                message = ended.get_message(timeout=min(left, ASK_AGAIN_SECONDS))
                if message and message["type"] == "message":
                    return _outcome_of_message(message["data"])
                # It listens now, again, or has heard nothing for long.
                outcome = _outcome(*self._call("v1_await", job_id))
                if outcome.state in ENDED:
                    return outcome
                if left == 0:
                    return None

    def result(self, job_id):
        """-> the Outcome as it is now. state: also waiting, parked, running or failed."""
        return _outcome(*self._call("result", job_id))

    def cancel(self, job_id):
        """-> "cancelled", "cancelling" (it runs) or "freed"."""
        return self._call("cancel", job_id).decode()

    def _call(self, function, *args):
        with _errors_by_code():
            return self._redis.fcall("later_" + function, 1, self._root, *args)
