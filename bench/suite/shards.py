"""A namespace in N shards on a cluster of N nodes, each held to a part of a processor."""
import os
import statistics
import subprocess
import time

from . import laterd, procs, redis

SLOTS = 16384
NAMESPACE = "shop"
PERIOD_US = 10000 # the scheduler's, so that a node never rests for long
V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"


def _write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(str(text))


class Hold:
    """A cgroup with this share of one processor. A `with` block; it needs root."""

    def __init__(self, name):
        self.is_v1 = os.path.isdir(V1)
        self.path = os.path.join(V1 if self.is_v1 else V2, f"laterd-bench-{os.getpid()}-{name}")

    def __enter__(self):
        try:
            if not self.is_v1:
                _write(os.path.join(V2, "cgroup.subtree_control"), "+cpu")
            os.mkdir(self.path)
        except OSError as e:
            raise procs.Failed(f"no group for a share of the processor: {e.strerror} (root is needed)") from e
        return self

    def set(self, share):
        """None: all it can get"""
        quota = int(PERIOD_US * share) if share else None
        if self.is_v1:
            _write(os.path.join(self.path, "cpu.cfs_period_us"), PERIOD_US)
            _write(os.path.join(self.path, "cpu.cfs_quota_us"), quota or -1)
        else:
            _write(os.path.join(self.path, "cpu.max"), f"{quota or 'max'} {PERIOD_US}")

    def take(self, process):
        _write(os.path.join(self.path, "cgroup.procs"), process.pid)

    def __exit__(self, *_):
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.05)


class Cluster:
    """N primaries; node i owns the slot of shard i. A `with` block."""

    def __init__(self, n, share):
        self.n, self.share = n, share
        self.nodes, self.holds = [], []

    def __enter__(self):
        try:
            for i in range(self.n):
                self.holds.append(Hold(str(i)).__enter__())
                self.nodes.append(redis.Server("--cluster-enabled", "yes", "--cluster-node-timeout", "60000",
                                               "--cluster-port", str(procs.free_port())))
                self.holds[i].take(self.nodes[i].process)
            self._share_slots()
            self.by = "cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for node in self.nodes:
            node.stop()
        for hold in self.holds:
            hold.__exit__()

    def _share_slots(self):
        first = self.nodes[0].call
        mine = {}
        for i, node in enumerate(self.nodes):
            mine.setdefault(node.call("CLUSTER", "KEYSLOT", f"{{{NAMESPACE}.{i}}}"), i)
        if len(mine) < self.n:
            raise procs.Failed("two shards have the same slot")
        for i, node in enumerate(self.nodes):
            slots = [s for s in range(SLOTS) if mine.get(s, 0) == i]
            node.call("CLUSTER", "ADDSLOTS", *slots)
            node.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            port = node.call("CONFIG", "GET", "cluster-port")[1]
            first("CLUSTER", "MEET", "127.0.0.1", node.port, port)
        for node in self.nodes:
            procs.await_true("the cluster is whole", lambda node=node: self._is_whole(node), 60, 0.05, node.process)

    def _is_whole(self, node):
        info = dict(line.split(":", 1) for line in node.call("CLUSTER", "INFO").splitlines() if ":" in line)
        return info["cluster_state"].strip() == "ok" and int(info["cluster_known_nodes"]) == self.n

    def hold(self, is_held):
        for hold in self.holds:
            hold.set(self.share if is_held else None)

    def later(self, *words, stdin=None):
        """-> (its output, seconds)"""
        argv = [laterd.LATER, "--redis", self.by, "--namespace", NAMESPACE, "--shards", str(self.n), *words]
        begin = time.monotonic()
        done = subprocess.run(argv, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=laterd.environment(), timeout=600, check=False)
        if done.returncode not in (0, 1):
            raise procs.Failed(f"later {words[0]}: {done.returncode}: {done.stderr.decode().strip()[-300:]}")
        return done.stdout.decode(), time.monotonic() - begin

    def left(self):
        """How many jobs there are"""
        return sum(node.call("HLEN", f"later:{{{NAMESPACE}.{i}}}:jobs") for i, node in enumerate(self.nodes))


def add(cluster, lines):
    """-> jobs added a second, by one `later add --from`, which spreads them"""
    path = os.path.join(procs.folder("shards"), "lines")
    with open(path, "w", encoding="ascii") as f:
        f.writelines(f"{i:0{laterd.PAYLOAD_BYTES}d}\n" for i in range(lines))
    cluster.hold(True)
    _, seconds = cluster.later("add", "bench", "--from", path)
    cluster.hold(False)
    return lines / seconds


class _Shard:
    """The daemon of a shard."""

    def __init__(self, cluster, i):
        kind = laterd.fastest()
        config = laterd.write_config(cluster.by, {"bench": kind.queue()}, kind.places)
        env = dict(laterd.environment(), LATERD_NAMESPACE=NAMESPACE, LATERD_SHARDS=str(cluster.n), LATERD_SHARD=str(i))
        self.process = procs.start([laterd.LATERD, "--config", config], config[:-4] + "log", env=env)

    def stop(self):
        procs.stop(self.process)


def drain(cluster):
    """-> jobs done a second, from when the daemons may claim until none is left"""
    cluster.later("pause", "bench", "--new")
    shards = [_Shard(cluster, i) for i in range(cluster.n)]
    for i, node in enumerate(cluster.nodes):
        procs.await_true("laterd registers", lambda i=i, node=node: node.call(
            "HLEN", f"later:{{{NAMESPACE}.{i}}}:workers") == 1, 60, 0.02, shards[i].process)
    jobs = cluster.left()
    cluster.later("resume", "bench")
    cluster.hold(True)
    begin = time.monotonic()
    while cluster.left() > 0:
        time.sleep(0.05)
        if time.monotonic() - begin > 600:
            raise procs.Failed("jobs are left after ten minutes")
    seconds = time.monotonic() - begin
    cluster.hold(False)
    for shard in shards:
        shard.stop()
    return jobs / seconds


def verbs(cluster, times):
    """-> {verb: median of its milliseconds}, of a whole process each; the nodes are not held"""
    printed, _ = cluster.later("add", "looked", "--in", "1h", "--key", "k", "x")
    job = printed.split()[0]
    asked = {"add": ("add", "looked", "--in", "1h", "x"), "show": ("show", job), "show, by the id alone":
             ("show", job.split(".")[0]), "ls": ("ls", "looked"), "stats": ("stats",), "health": ("health",)}
    return {name: statistics.median(1000 * cluster.later(*words)[1] for _ in range(times))
            for name, words in asked.items()}
