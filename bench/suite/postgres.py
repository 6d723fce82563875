"""A private PostgreSQL: a cluster in a folder of this run, as a user other than root."""
import glob
import os
import shutil

from . import procs

UNPRIVILEGED = ("nobody", "nogroup")


def programs():
    """The folder of initdb and postgres, the newest one; None when it is not installed."""
    found = shutil.which("initdb")
    if found:
        return os.path.dirname(found)
    folders = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    newest = sorted(folders, key=lambda path: [int(n) for n in path.split("/")[4].split(".")])
    return os.path.dirname(newest[-1]) if newest else None


class Server:
    """No more durable than a Redis without append-only file, so that the comparison is fair."""

    def __init__(self):
        who = {}
        self.dir = procs.folder("postgres")
        if os.geteuid() == 0:
            who = {"user": UNPRIVILEGED[0], "group": UNPRIVILEGED[1], "extra_groups": []}
            shutil.chown(self.dir, *UNPRIVILEGED)
        bin_dir, data = programs(), os.path.join(self.dir, "data")
        procs.output([f"{bin_dir}/initdb", "-D", data, "-U", "bench", "-A", "trust", "-N", "-E", "UTF8",
                      "--locale=C"], cwd=self.dir, **who)
        port = procs.free_port()
        self.url = f"postgres://bench@127.0.0.1:{port}/postgres"
        settings = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", f"port={port}",
                    "listen_addresses=127.0.0.1", f"unix_socket_directories={self.dir}",
                    "shared_buffers=256MB")
        argv = [f"{bin_dir}/postgres", "-D", data]
        for setting in settings:
            argv += ["-c", setting]
        self.process = procs.start(argv, os.path.join(self.dir, "log"), cwd=self.dir, **who)
        try:
            procs.await_true("PostgreSQL listens", lambda: procs.listens(port), 30, 0.05, self.process)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        procs.stop(self.process, 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
