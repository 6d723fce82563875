"""A private redis-server, and a client that is just enough for measuring."""
import os
import socket

from . import procs


SLOW_CALLS = 16384 # entries that the slow log keeps


class RedisError(Exception):
    """An error reply of the server."""


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    @staticmethod
    def _encode(words):
        out = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            out.append(b"$%d\r\n%s\r\n" % (len(data), data))
        return b"".join(out)

    def __call__(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, calls):
        self.socket.sendall(b"".join(self._encode(words) for words in calls))
        return [self.reply() for _ in calls]

    def reply(self):
        line = self.replies.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.replies.read(size + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return [self.reply() for _ in range(max(int(rest), 0))]
        raise RedisError("the connection broke")

    def info(self, section):
        pairs = (line.split(":", 1) for line in self("INFO", section).splitlines() if ":" in line)
        return {name: value.strip() for name, value in pairs}

    def close(self):
        self.replies.close()
        self.socket.close()


# LATER_SERVER: the path of another server, or valkey.
PROGRAM = os.environ.get("LATER_SERVER") or "redis-server"
if PROGRAM == "valkey":
    PROGRAM = "valkey-server"


class Server:
    """Without persistence unless more settings ask for it. A `with` block."""

    def __init__(self, *settings):
        self.dir = procs.folder("redis")
        self.port = procs.free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.log = os.path.join(self.dir, "log")
        self.process = procs.start(
            [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.dir, *settings], self.log)
        try:
            procs.await_true("redis-server listens", lambda: procs.listens(self.port), 20, 0.01,
                             self.process)
            self.call = Client(self.port)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        # The data is not needed any more: no last snapshot, no orderly end.
        procs.stop(self.process, 9)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def used_memory(self):
        return int(self.call.info("memory")["used_memory"])

    def watch_slow(self):
        """From now on log calls of two milliseconds, and count ten milliseconds as an event."""
        for name, value in (("slowlog-log-slower-than", 2000), ("slowlog-max-len", SLOW_CALLS),
                            ("latency-monitor-threshold", 10)):
            self.call("CONFIG", "SET", name, value)
        self.call("SLOWLOG", "RESET")
        self.call("LATENCY", "RESET")

    def slowest(self):
        """-> (ms of the slowest call of a function, its name, events over 10 ms)"""
        # Read the events first: reading a long log makes one.
        events = [f"{row[0]} {row[3]} ms" for row in self.call("LATENCY", "LATEST")]
        calls = [(row[2] / 1000, row[3][1]) for row in self.call("SLOWLOG", "GET", SLOW_CALLS)
                 if row[3][0].upper().startswith("FCALL")]
        ms, name = max(calls, default=(0, ""))
        return ms, name, events
