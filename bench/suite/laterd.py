"""Runs of laterd: how it is configured, and how its work is watched from outside."""
import json
import os
import struct
import time

from . import procs

LATERD = os.path.join(procs.TOP, "laterd")
LATER = os.path.join(procs.TOP, "later")
ROOT = "later:{default}"
PAYLOAD_BYTES = 100
PLUGIN = os.path.join(procs.PROGRAMS, "job_plugin.so")
STREAM_C = os.path.join(procs.PROGRAMS, "job_stream")
STREAM_PYTHON = os.path.join(procs.PROGRAMS, "job_stream.py")
# As many handler processes as processors; enough jobs in flight that a sync carries hundreds.
PROCESSES = os.cpu_count() or 1
IN_FLIGHT = 256
PLUGIN_PLACES = 64
EXEC_PLACES = 16 # laterd's default


class Kind:
    """A way to run a handler: its settings, and whether the handler notes its starts."""

    def __init__(self, name, mode, program, places, extra=""):
        self.name, self.mode, self.program = name, mode, program
        self.places, self.extra = places, extra

    def queue(self, record=None):
        """The settings of a queue, in flow style."""
        handler = [self.program] + ([record] if record else [])
        return f"{{ mode: {self.mode}, handler: {json.dumps(handler)}{self.extra} }}"


PLUGIN_KIND = Kind("plug-in", "plugin", PLUGIN, PLUGIN_PLACES)
STREAM_C_KIND = Kind("stream process in C", "stream", STREAM_C, IN_FLIGHT,
                     f", processes: {PROCESSES}, concurrency: {IN_FLIGHT}")
STREAM_PYTHON_KIND = Kind("stream process in Python", "stream", STREAM_PYTHON, IN_FLIGHT,
                          f", processes: {PROCESSES}, concurrency: {IN_FLIGHT}")
EXEC_KIND = Kind("a process a job", "exec", "/bin/true", EXEC_PLACES)


def environment():
    """Our environment without the variables that configure laterd."""
    return {name: value for name, value in os.environ.items() if not name.startswith("LATERD_")}


def write_config(url, queues, places):
    """queues: name -> settings in flow style; None: all have the defaults. -> the file"""
    path = procs.folder("laterd")
    lines = [f"redis: {url}", f"state_dir: {path}/state", 'handlers_dir: ""', "check_permissions: warn",
             f"concurrency: {places}", "log_level: warn"]
    lines += [f"defaults: {queues[None]}"] if None in queues else []
    lines += ["queues:"]
    lines += [f"  {name}: {settings}" for name, settings in queues.items() if name]
    config = os.path.join(path, "laterd.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    os.chmod(config, 0o644)
    return config


def fastest():
    """The first way to run handlers that this build has."""
    return next(kind for kind in (PLUGIN_KIND, STREAM_C_KIND, EXEC_KIND) if missing(kind) is None)


def missing(kind):
    """Why this build cannot run handlers in this way, or None."""
    config = write_config("redis://127.0.0.1:1", {"bench": kind.queue()}, kind.places)
    try:
        procs.output([LATERD, "--check-config", "--config", config], 20, env=environment())
    except procs.Failed as e:
        return str(e).rsplit("laterd.yaml:", maxsplit=1)[-1].lstrip("0123456789: ")
    return None


class Daemon:
    """One laterd. A `with` block."""

    def __init__(self, url, queues, places):
        config = write_config(url, queues, places)
        self.log = config[:-4] + "log"
        self.process = procs.start([LATERD, "--config", config], self.log, env=environment())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        procs.stop(self.process)

    def why(self):
        """The end of its log, for a message."""
        return procs.last_line(self.log)


def setup(server):
    procs.output([LATER, "--redis", server.url, "setup"], env=environment())


def add(server, queue, n, how="many", from_ms=0, span_ms=0, payload=PAYLOAD_BYTES):
    """-> what add_jobs measured"""
    text = procs.output([os.path.join(procs.PROGRAMS, "add_jobs"), str(server.port), queue, str(n),
                         str(payload), how, str(from_ms), str(span_ms)], 3600)
    return json.loads(text)


def stats(server):
    """-> (workers, running, jobs, done). Read from the keys, since the cost of later_stats grows with the queues."""
    workers, running, jobs, counters = server.call.pipeline([
        ("HLEN", ROOT + ":workers"), ("ZCARD", ROOT + ":running"), ("HLEN", ROOT + ":jobs"),
        ("HGETALL", ROOT + ":stats")])
    pairs = zip(counters[::2], counters[1::2])
    return workers, running, jobs, sum(int(count) for name, count in pairs if name.startswith("done:"))


def await_workers(server, daemon, n=1):
    try:
        procs.await_true("laterd registers", lambda: stats(server)[0] >= n, 30, 0.01, daemon.process)
    except procs.Failed as e:
        raise procs.Failed(f"{e}: {daemon.why()}") from e


def await_start(server, daemon, jobs):
    """Wait until the first job is claimed; -> when. Checks every millisecond, so it is at most that late."""
    until = time.monotonic() + 60
    while True:
        running, left = server.call.pipeline([("ZCARD", ROOT + ":running"), ("HLEN", ROOT + ":jobs")])
        if running > 0 or left < jobs:
            return time.monotonic()
        if daemon.process.poll() is not None or time.monotonic() > until:
            raise procs.Failed(f"laterd starts no job: {daemon.why()}")
        time.sleep(0.001)


LOOK_S, LOOK_LEAST_S, LOOK_MOST_S = 0.01, 0.002, 0.25


def pause_s(ended, seconds, left):
    """How long to wait before the next check, if `ended` jobs ended in the last `seconds`: until half of the rest
    should have ended. Checking all the time would use the processors that are measured."""
    if ended <= 0:
        return LOOK_S
    return min(max(left * seconds / ended / 2, LOOK_LEAST_S), LOOK_MOST_S)


def await_end(server, daemon, left, seconds=600):
    """Wait until only `left` jobs exist; -> when the last of the others was confirmed.
    A job has its record until its end is confirmed, so the length of one hash is the number of jobs."""
    until, before, jobs, pause = time.monotonic() + seconds, time.monotonic(), None, LOOK_S
    while True:
        was, jobs, now = jobs, server.call("HLEN", ROOT + ":jobs"), time.monotonic()
        if jobs <= left:
            return now
        if daemon.process.poll() is not None or now > until:
            raise procs.Failed(f"laterd does not end its jobs: {daemon.why()}")
        if was is not None:
            pause = pause_s(was - jobs, now - before, jobs - left)
        before = now
        time.sleep(pause)


def drain(server, queues, places, n, left=0):
    """Drain n due jobs beside `left` others. -> jobs a second, from the first start to the last confirmed end"""
    done = stats(server)[3]
    with Daemon(server.url, queues, places) as daemon:
        begin = await_start(server, daemon, n + left)
        end = await_end(server, daemon, left)
        done = stats(server)[3] - done
    if done != n:
        raise procs.Failed(f"{done} of {n} jobs are counted as done")
    return n / (end - begin)


def read_record(path):
    """-> [(due, start) in microseconds since 1970]"""
    with open(path, "rb") as f:
        data = f.read()
    return list(struct.iter_unpack("=qq", data[:len(data) // 16 * 16]))
