"""The load generators that are compared: how each is told what to do, and what it says. What a generator costs is its own processor time, as the system
counts it when the process has ended."""

import dataclasses
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import threading

import machine


@dataclasses.dataclass(frozen=True)
class Order:
    """What a generator shall do: clients that stay, for a number of requests or for seconds."""

    url: str
    connections: int
    requests: int = 0
    seconds: int = 0
    protocol: str = "h1"  # or h2, h3
    streams: int = 1

    @property
    def secure(self):
        return self.url.startswith("https:")


@dataclasses.dataclass
class Told:
    """What came of it. `cpu`: seconds of the processor; `memory`: bytes at most; `times`: {"p99": ms} as the generator prints them; `said`: JSON or text."""

    requests: int
    failed: int
    rate: float
    cpu: float
    memory: int
    times: dict
    said: object

    @property
    def cpu_us(self):
        return self.cpu * 1e6 / max(1, self.requests)


def seawall_words(order, *more):
    """`seawall bench`, with one worker, as the others have one thread."""
    protocol = {"h1": [], "h2": ["--http2"], "h3": ["--http3"]}[order.protocol]
    limits = ["-n", order.requests] if order.requests else ["-d", f"{order.seconds}s"]
    streams = ["--streams", order.streams] if order.streams > 1 else []
    return [machine.SEAWALL, "bench", "-c", order.connections, *limits, *protocol, *streams, *(["--insecure"] if order.secure else []), "-t", 1, "-q", *more, order.url]


def wrk_words(order):
    return ["wrk", "-t", 1, "-c", order.connections, "-d", f"{order.seconds}s", "--timeout", "30s", "--latency", order.url]


def ab_words(order):
    limits = ["-n", order.requests] if order.requests else ["-t", order.seconds, "-n", 100_000_000]
    return ["ab", "-k", "-q", "-r", "-s", 60, "-c", order.connections, *limits, order.url]


def h2load_words(order):
    limits = ["-n", order.requests] if order.requests else ["-D", order.seconds]
    return ["h2load", "-t", 1, "-c", order.connections, "-m", order.streams, *limits, *(["--h1"] if order.protocol == "h1" else []), order.url]


def find(pattern, text, kind=float, otherwise=0):
    found = re.search(pattern, text)
    return kind(found[1].replace(",", "")) if found else otherwise


UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}


def in_ms(word):
    """1.23ms, 45us or 2.00s, in ms."""
    found = re.fullmatch(r"([\d.]+)(us|ms|s|m)", word)
    return float(found[1]) * UNITS[found[2]] if found else None


def seawall_said(text):
    try:
        said = json.loads(text)
    except json.JSONDecodeError:
        sys.exit(f"seawall bench did not write JSON:\n{text[:2000]}")
    times = {name: said["latency"][name] for name in ("p50", "p75", "p90", "p95", "p99", "p99_9", "max")}
    return said["requests"], sum(said["errors"].values()), said["rate"], times, said


def wrk_said(text):
    failed = sum(map(int, (re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text) or [0]).groups())) if "Socket errors" in text else 0
    times = {f"p{part}": in_ms(time) for part, time in re.findall(r"^\s+(50|75|90|99)%[ \t]+(\S+)[ \t]*$", text, re.M)}
    longest = re.search(r"Latency\s+\S+\s+\S+\s+(\S+)", text)
    if longest:
        times["max"] = in_ms(longest[1])
    return find(r"(\d+) requests in", text, int), failed + find(r"Non-2xx or 3xx responses: (\d+)", text, int), find(r"Requests/sec:\s+([\d.]+)", text), times, text


def ab_said(text):
    times = {{"100": "max"}.get(part, f"p{part}"): float(time) for part, time in re.findall(r"^\s+(50|75|90|95|99|100)%\s+(\d+)", text, re.M)}
    failed = find(r"Failed requests:\s+(\d+)", text, int) + find(r"Non-2xx responses:\s+(\d+)", text, int)
    return find(r"Complete requests:\s+(\d+)", text, int), failed, find(r"Requests per second:\s+([\d.]+)", text), times, text


def h2load_said(text):
    numbers = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded", text)
    times = re.search(r"time for request:\s+(\S+)\s+(\S+)\s+(\S+)", text)
    done, good = map(int, numbers.groups()) if numbers else (0, 0)
    return done, done - good, find(r"finished in \S+, ([\d.]+) req/s", text), {"mean": in_ms(times[3]), "max": in_ms(times[2])} if times else {}, text


@dataclasses.dataclass(frozen=True)
class Generator:
    name: str
    title: str
    words: object
    read: object
    protocols: tuple
    counts_requests: bool = True  # can be told a number of requests

    def run(self, order, core=None, environment=None, wrap=()):
        """`wrap`: what is put in front of the command, strace for one, whose own costs are then in the figures."""
        words = self.words(order, "--format", "json") if self.name == "seawall" else self.words(order)
        return run([*wrap, *words], self.read, core, environment)


SEAWALL = Generator("seawall", "seawall bench", seawall_words, seawall_said, ("h1", "h2", "h3"))
WRK = Generator("wrk", "wrk", wrk_words, wrk_said, ("h1",), counts_requests=False)
AB = Generator("ab", "ab", ab_words, ab_said, ("h1",))
H2LOAD = Generator("h2load", "h2load", h2load_words, h2load_said, ("h1", "h2"))
ALL = (SEAWALL, WRK, AB, H2LOAD)


class Peak:
    """The most memory that a process has had, asked of the system until it ends: what wait4 says of that counts this script's own, too, out of which it was started."""

    def __init__(self, pid, pause=0.1):
        self.most, self.pause, self.over = 0, pause, threading.Event()
        self.status = pathlib.Path(f"/proc/{pid}/status")
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self):
        while not self.over.wait(self.pause):
            try:
                text = self.status.read_text()
            except OSError:
                return
            found = re.search(r"^VmHWM:\s+(\d+)", text, re.M)
            # Until it has become the program, it is a copy of this script.
            if found and "python" not in text.partition("\n")[0]:
                self.most = max(self.most, int(found[1]) * 1024)

    def end(self):
        self.over.set()
        self.thread.join()
        return self.most


def run(words, read, core=None, environment=None):
    """Runs a generator to its end. Its exit code may say that something failed; what it wrote says what."""
    words = [str(word) for word in ([] if core is None else ["taskset", "-c", core]) + list(words)]
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, text=True, env=environment)
        peak = Peak(process.pid)
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        memory = peak.end()
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        complaints.seek(0)
        said = complaints.read()
    if not text.strip():
        sys.exit(f"{' '.join(words)}: {process.returncode}\n{said[-3000:]}")
    requests, failed, rate, times, whole = read(text)
    if not requests:
        machine.say(f"{' '.join(words)}: not one request\n{text[-1500:]}{said[-1500:]}")
    return Told(requests, failed, rate, used.ru_utime + used.ru_stime, memory, times, whole)


def in_a_terminal(words, core=None):
    """Runs a command that sees a terminal of 120 columns and 40 lines. Returns the seconds of processor time that it used, and all that it drew."""
    words = [str(word) for word in ([] if core is None else ["taskset", "-c", core]) + list(words)]
    ours, theirs = pty.openpty()
    subprocess.run(["stty", "cols", "120", "rows", "40"], stdin=theirs, check=True)
    drawn = []

    def take():
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            drawn.append(piece)

    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(os.environ, TERM="xterm-256color"), start_new_session=True)
    os.close(theirs)
    reader = threading.Thread(target=take)
    reader.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    os.close(ours)
    return used.ru_utime + used.ru_stime, b"".join(drawn).decode(errors="replace"), process.returncode


def system_calls(generator, order, few, many, folder, environment=None):
    """({call: how many a request}) of a generator: what `many` requests need more than `few`, so that start and end are not in it. One without a number of requests
    gets seconds instead."""
    counted = []
    for at, size in enumerate((few, many)):
        report = pathlib.Path(folder) / f"strace-{generator.name}-{at}"
        limits = {"requests": size} if generator.counts_requests else {"seconds": at * 3 + 1}
        told = generator.run(dataclasses.replace(order, **{"requests": 0, "seconds": 0, **limits}), None, environment, ["strace", "-f", "-c", "-U", "calls,name", "-o", report])
        calls = {name: int(count) for count, name in re.findall(r"^\s*(\d+)\s+(\w+)\s*$", report.read_text(), re.M) if name != "total"}
        counted.append((told.requests, calls))
    (least, before), (most, after) = counted
    return {name: (count - before.get(name, 0)) / max(1, most - least) for name, count in sorted(after.items(), key=lambda one: -one[1]) if count > before.get(name, 0)}
