"""Processes and folders of one run. They are removed when it ends, however it ends."""
import atexit
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(TOP, "bench", "programs")
PEERS = os.path.join(TOP, "bench", "peers")

_libc = ctypes.CDLL(None)
_running = []
_folder = None


class Failed(Exception):
    """A run failed; the text says why."""


def folder(name):
    """A new folder of this run. Other users may enter it, since PostgreSQL runs as another user."""
    global _folder
    if _folder is None:
        _folder = tempfile.mkdtemp(prefix="laterd-bench.")
        os.chmod(_folder, 0o711)
    path = tempfile.mkdtemp(prefix=name + ".", dir=_folder)
    os.chmod(path, 0o755)
    return path


def clear():
    for process in list(_running):
        stop(process, signal.SIGKILL)
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def on_signal(number, _frame):
    raise SystemExit(128 + number)


def arm():
    """Clean up at the end and at every signal that can be caught."""
    atexit.register(clear)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(argv, log=None, **more):
    """A process in its own group, with its output in the file `log`."""
    out = open(log, "ab") if log else subprocess.DEVNULL
    try:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True, preexec_fn=_die_with_parent, **more)
    except OSError as e:
        raise Failed(f"{argv[0]}: {e.strerror}") from e
    finally:
        if log:
            out.close()
    _running.append(process)
    return process


def stop(process, number=signal.SIGTERM, seconds=30):
    """End the process and the rest of its group."""
    if process in _running:
        _running.remove(process)
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def output(argv, seconds=600, **more):
    """-> its output; Failed with the end of its error messages"""
    log = os.path.join(folder("run"), "stderr")
    with open(log, "wb") as err:
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=err, start_new_session=True,
                                       preexec_fn=_die_with_parent, **more)
        except OSError as e:
            raise Failed(f"{argv[0]}: {e.strerror}") from e
    _running.append(process)
    try:
        text = process.communicate(timeout=seconds)[0].decode()
    except subprocess.TimeoutExpired as e:
        raise Failed(f"{os.path.basename(argv[0])} took more than {seconds} s") from e
    finally:
        stop(process, signal.SIGKILL)
    if process.returncode != 0:
        raise Failed(f"{os.path.basename(argv[0])} ended with {process.returncode}: {last_line(log)}")
    return text


def last_line(path):
    with open(path, "rb") as f:
        lines = f.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def await_true(what, condition, seconds=60, step=0.02, process=None):
    """Check repeatedly until it is so; Failed when it is not so in time, or when the process has ended."""
    until = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            raise Failed(f"it ended with {process.returncode} before {what}")
        if time.monotonic() > until:
            raise Failed(f"waited {seconds} s in vain for: {what}")
        time.sleep(step)


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def stolen_s():
    """Seconds since boot during which another virtual machine had the processors: then nothing here is slow by itself."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = f.readline().split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0


def find(command, *folders):
    """Where the command is; None when it is not installed."""
    path = os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/bin", "/usr/sbin"])
    return shutil.which(command, path=path)
