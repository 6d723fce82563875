"""Other job systems with the same work. Each run has its own server. A missing system is reported."""
import json
import os
import struct

from . import postgres, procs, redis

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "laterd-peers")
MODULES = os.path.join(CACHE, "node_modules")
# Command -> Debian package; a command that exists already is not installed again.
PACKAGES = {"node": "nodejs", "npm": "npm", "ruby": "ruby", "sidekiq": "ruby-sidekiq", "celery": "celery",
            "beanstalkd": "beanstalkd", "redis-benchmark": "redis-tools"}
NPM = ("bullmq@6", "ioredis@5", "graphile-worker@0.18", "pg@8")
SECONDS = 900


def setup():
    """Install the peers: commands by apt-get, modules by npm into the cache."""
    lacking = {package for command, package in PACKAGES.items() if not procs.find(command)}
    if postgres.programs() is None:
        lacking.add("postgresql")
    if procs.find("celery") is None or not _python_has_redis():
        lacking.add("python3-redis")
    if lacking:
        line = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *sorted(lacking)]
        if os.geteuid() != 0:
            raise procs.Failed("missing packages; run:  sudo " + " ".join(line))
        procs.output(line, 1800, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    os.makedirs(CACHE, exist_ok=True)
    procs.output(["npm", "--prefix", CACHE, "install", *NPM], 1800)


def _python():
    """The Python of the system, for which the Celery package is installed."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


def _python_has_redis():
    try:
        procs.output([_python(), "-c", "import celery, redis"], 60)
    except procs.Failed:
        return False
    return True


class Peer:
    """name; modes: what it can run; sizes: jobs of a run for each mode."""

    name = ""
    note = ""
    modes = ()
    # Enough jobs to be measured, but not minutes of the slowest peer.
    sizes = {"drain": 20000, "exec": 3000, "late": 5000, "herd": 10000, "mem": 100000, "add": 50000}

    def missing(self):
        """Why it cannot run here, or None."""
        raise NotImplementedError

    def run(self, mode, n, span):
        """-> the answer of its driver; {} if the mode has none"""
        raise NotImplementedError

    def idle(self, measure):
        """Call measure(processes, port or None) while the system is idle."""
        raise NotImplementedError


def _node(driver, mode, n, span, **env):
    return [procs.find("node"), os.path.join(procs.PEERS, driver), mode, str(n), str(span)], {
        **os.environ, "NODE_PATH": MODULES, **env}


def _node_missing(*modules):
    if procs.find("node") is None:
        return "node"
    lacking = [m for m in modules if not os.path.isdir(os.path.join(MODULES, m))]
    return f"{', '.join(lacking)} in {CACHE}" if lacking else None


class BullMQ(Peer):
    name = "BullMQ"
    note = "concurrency 100"
    modes = ("drain", "exec", "late", "herd", "mem", "add", "idle")

    def missing(self):
        return _node_missing("bullmq", "ioredis")

    def run(self, mode, n, span, driver="bullmq.js", **env):
        with redis.Server() as server:
            argv, env = _node(driver, mode, n, span, REDIS_PORT=str(server.port), **env)
            return json.loads(procs.output(argv, SECONDS, env=env))

    def idle(self, measure):
        with redis.Server() as server:
            argv, env = _node("bullmq.js", "idle", 0, 0, REDIS_PORT=str(server.port))
            worker = procs.start(argv, env=env)
            try:
                return measure(worker, server)
            finally:
                procs.stop(worker, 9)


class Graphile(Peer):
    name = "graphile-worker"
    note = "batched settings, fsync off"
    modes = ("drain", "exec", "late", "herd", "add", "idle")

    def missing(self):
        if postgres.programs() is None:
            return "postgresql"
        return _node_missing("graphile-worker", "pg")

    def run(self, mode, n, span):
        with postgres.Server() as server:
            argv, env = _node("graphile.js", mode, n, span, DATABASE_URL=server.url)
            return json.loads(procs.output(argv, SECONDS, env=env))

    def idle(self, measure):
        with postgres.Server() as server:
            argv, env = _node("graphile.js", "idle", 0, 0, DATABASE_URL=server.url)
            worker = procs.start(argv, env=env)
            try:
                return measure(worker, None)
            finally:
                procs.stop(worker, 9)


class Sidekiq(Peer):
    name = "Sidekiq"
    note = "10 threads"
    modes = ("drain", "exec", "late", "herd", "mem", "add", "idle")
    sizes = {**Peer.sizes, "drain": 10000}

    def missing(self):
        return None if procs.find("sidekiq") and procs.find("ruby") else "sidekiq"

    @staticmethod
    def _command():
        # The interpreter that the package belongs to, whichever `ruby` comes first in PATH.
        ruby = "/usr/bin/ruby" if os.path.exists("/usr/bin/ruby") else procs.find("ruby")
        return ruby, [ruby, procs.find("sidekiq", "/usr/bin")]

    def run(self, mode, n, span):
        ruby, sidekiq = self._command()
        script = os.path.join(procs.PEERS, "sidekiq.rb")
        answer = os.path.join(procs.folder("sidekiq"), "answer")
        with redis.Server() as server:
            env = {**os.environ, "MODE": mode, "N": str(n), "SPAN": str(span), "ANSWER": answer,
                   "REDIS_PORT": str(server.port)}
            added = json.loads(procs.output([ruby, script], SECONDS, env=env))
            if mode in ("mem", "add"):
                return added
            procs.output([*sidekiq, "-q", "default", "-c", "10", "-r", script], SECONDS, env=env)
        with open(answer, encoding="utf-8") as f:
            return json.load(f)

    def idle(self, measure):
        with redis.Server() as server:
            env = {**os.environ, "MODE": "idle", "N": "0", "REDIS_PORT": str(server.port)}
            script = os.path.join(procs.PEERS, "sidekiq.rb")
            worker = procs.start([*self._command()[1], "-q", "default", "-c", "10", "-r", script], env=env)
            try:
                return measure(worker, server)
            finally:
                procs.stop(worker, 9)


class Celery(Peer):
    name = "Celery"
    note = "2 processes, acks early"
    modes = ("drain", "exec", "late", "mem", "add", "idle")
    sizes = {**Peer.sizes, "drain": 5000, "mem": 10000, "add": 5000}

    def missing(self):
        if procs.find("celery") is None:
            return "celery"
        return None if _python_has_redis() else "python3-redis"

    @staticmethod
    def _worker(env, log=None):
        return procs.start([_python(), "-m", "celery", "-A", "celery_tasks", "worker", "-c", "2", "-l", "error",
                            "--without-gossip", "--without-mingle", "--without-heartbeat"],
                           log, env=env, cwd=procs.PEERS)

    def run(self, mode, n, span):
        folder = procs.folder("celery")
        record = os.path.join(folder, "record")
        with redis.Server() as server:
            env = {**os.environ, "REDIS_PORT": str(server.port), "RECORD": record, "MODE": mode,
                   "PYTHONDONTWRITEBYTECODE": "1"}
            if os.geteuid() == 0:
                env["C_FORCE_ROOT"] = "1"
            script = os.path.join(procs.PEERS, "celery_tasks.py")
            added = json.loads(procs.output([_python(), script, mode, str(n), str(span)], SECONDS, env=env))
            if mode in ("mem", "add"):
                return added
            worker = self._worker(env, os.path.join(folder, "log"))
            try:
                procs.await_true(f"{n} tasks ended", lambda: _size(record) >= 16 * n, SECONDS, 0.1, worker)
            finally:
                procs.stop(worker)
        with open(record, "rb") as f:
            rows = list(struct.iter_unpack("=qq", f.read()))
        starts = [start for _, start in rows]
        return {"n": n, "seconds": (max(starts) - min(starts)) / 1e6,
                "late_ms": [(start - due) / 1000 for due, start in rows if due]}

    def idle(self, measure):
        with redis.Server() as server:
            env = {**os.environ, "REDIS_PORT": str(server.port), "MODE": "idle", "C_FORCE_ROOT": "1",
                   "PYTHONDONTWRITEBYTECODE": "1"}
            worker = self._worker(env)
            try:
                return measure(worker, server)
            finally:
                procs.stop(worker, 9)


class Beanstalkd(Peer):
    name = "beanstalkd"
    note = "one pipelined client, in memory"
    modes = ("drain", "late", "herd", "add")
    sizes = {**Peer.sizes, "drain": 100000}

    def missing(self):
        return None if procs.find("beanstalkd") else "beanstalkd"

    def run(self, mode, n, span):
        port = procs.free_port()
        server = procs.start([procs.find("beanstalkd"), "-l", "127.0.0.1", "-p", str(port)])
        try:
            procs.await_true("beanstalkd listens", lambda: procs.listens(port), 20, 0.01, server)
            argv = [_python(), os.path.join(procs.PEERS, "beanstalk.py"), mode, str(n), str(span)]
            return json.loads(procs.output(argv, SECONDS, env={**os.environ, "BEANSTALKD_PORT": str(port)}))
        finally:
            procs.stop(server, 9)


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


ALL = (BullMQ(), Graphile(), Sidekiq(), Celery(), Beanstalkd())
