"""One measured cell: wrk against one server for some seconds, and what the server spent on it."""

import dataclasses
import re
import signal
import subprocess
import sys
import time
import uuid

import client
import machine
from servers import PAGE_BYTES


# The share of the server's core that others may take before a cell is measured again, and how often it is measured at most.
DISTURBED, TRIES = 0.05, 3


@dataclasses.dataclass(frozen=True)
class Row:
    kind: str
    connections: int

    @property
    def name(self):
        return f"{self.kind}-{self.connections}"

    @classmethod
    def parse(cls, text):
        found = re.fullmatch(r"(hit|browsers|304|miss|pass)-?(\d+)", text)
        if not found or int(found[2]) < 1:
            sys.exit(f"no such row: {text!r}; a row is hit, browsers, 304, miss or pass with a number of connections, as hit-64")
        return cls(found[1], int(found[2]))


@dataclasses.dataclass
class Cell:
    """What one run of wrk gave. Times in microseconds; `busy` and `others` are the shares of the server's core that went to the server and to processes
    that have nothing to do with the measurement; the instructions are None where the hardware does not count them."""

    requests: int
    requests_per_s: float
    cpu_us: float
    busy: float
    others: float
    p50_us: float
    p99_us: float
    max_us: float
    errors: dict
    instructions_user: float | None = None
    instructions_kernel: float | None = None
    faults: list = dataclasses.field(default_factory=list)


def wrk(port, path, connections, seconds, core, arguments, threads=1, script="pages.lua", environment=None):
    """Runs wrk and returns what the script's done() printed."""
    command = ["wrk", "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s", "--timeout", "10s", "--latency",
               "-s", str(machine.BENCH / "wrk" / script), client.url(port, path), "--", *map(str, arguments)]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    line = re.search(r"^@@ (.*)$", done.stdout, re.M)
    if not line:
        sys.exit(f"wrk failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    names = ("requests", "duration_us", "bytes", "connect", "read", "write", "status", "timeout", "p50_us", "p99_us", "max_us")
    return dict(zip(names, (int(word) for word in line[1].split()), strict=True))


def ab(port, connections, requests, core, environment=None):
    """({requests/s, failed, not 2xx, p50, p99, longest}, why there is none) of ab on the front page, in ms; a connection for each request, as it is published."""
    command = ["taskset", "-c", str(core), "ab", "-q", "-s", "120", "-c", str(connections), "-n", str(requests), client.url(port, "/")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "ab failed"
    def find(pattern):
        found = re.search(pattern, done.stdout)
        return float(found[1]) if found else 0.0
    return {"requests_per_s": find(r"Requests per second:\s+([\d.]+)"), "failed": find(r"Failed requests:\s+(\d+)"), "not_2xx": find(r"Non-2xx responses:\s+(\d+)"),
            "p50": find(r"\n\s+50%\s+(\d+)"), "p99": find(r"\n\s+99%\s+(\d+)"), "longest": find(r"\n\s+100%\s+(\d+)")}, None


def one_page(port, path, connections, seconds, core, environment=None):
    """The same of wrk with two threads on one page."""
    told = wrk(port, path, connections, seconds, core, ("one",), threads=2, environment=environment)
    return {"requests": told["requests"], "requests_per_s": told["requests"] / told["duration_us"] * 1e6, "not_2xx": told["status"],
            "failed": sum(told[name] for name in ("connect", "read", "write", "timeout")),
            "p50": told["p50_us"] / 1000, "p99": told["p99_us"] / 1000, "longest": told["max_us"] / 1000}


class Instructions:
    """perf counting user and kernel instructions of some processes while the block runs."""

    def __init__(self, pids, wanted):
        self.command = ["perf", "stat", "-x,", "-e", "instructions:u,instructions:k", "-p", ",".join(map(str, pids))] if wanted else None
        self.user = self.kernel = None

    def __enter__(self):
        if self.command:
            self.perf = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(0.3)  # perf does not say when it has attached; the server is idle meanwhile
        return self

    def __exit__(self, *_):
        if not self.command:
            return
        self.perf.send_signal(signal.SIGINT)
        for line in self.perf.communicate()[1].splitlines():
            value, _, event = (line.split(",") + ["", ""])[:3]
            if not value.isdigit():
                continue
            # Added, not set: a machine with two kinds of cores reports each event once for either.
            if "instructions:u" in event:
                self.user = (self.user or 0) + int(value)
            elif "instructions:k" in event:
                self.kernel = (self.kernel or 0) + int(value)


def sample(title, running, server_core, count_instructions, run):
    """(cell, what wrk told) of one run of wrk on a server, which `run` starts."""
    pids = running.pids()
    cpu_before, core_before = machine.cpu_seconds(pids), machine.core_seconds(server_core)
    with Instructions(pids, count_instructions) as instructions:
        told = run()
    cpu = machine.cpu_seconds(pids) - cpu_before
    others = machine.core_seconds(server_core) - core_before - cpu

    requests = told["requests"]
    if requests == 0:
        sys.exit(f"{title}: wrk got no answer at all")
    wall = told["duration_us"] / 1e6
    cell = Cell(
        requests=requests, requests_per_s=requests / wall, cpu_us=cpu * 1e6 / requests, busy=cpu / wall, others=max(0.0, others / wall),
        p50_us=told["p50_us"], p99_us=told["p99_us"], max_us=told["max_us"],
        errors={name: told[name] for name in ("connect", "read", "write", "status", "timeout") if told[name]},
        instructions_user=instructions.user / requests if instructions.user is not None else None,
        instructions_kernel=instructions.kernel / requests if instructions.kernel is not None else None,
    )
    return cell, told


def undisturbed(measure, even_if_busy=False):
    """What `measure()` returns, measured again while other programs took a part of the server's core meanwhile."""
    for left in reversed(range(TRIES)):
        cell = measure()
        if cell.others <= DISTURBED or even_if_busy:
            break
        machine.say(f"  other programs took {cell.others * 100:.0f} % of the server's core" + (": once more" if left else ""))
    return cell


def measure(server, running, row, etag, seconds, cores, origin_port, count_instructions):
    """`cores`: the server's and the load's."""
    server_core, load_core = cores
    asked_before = client.origin_counts(origin_port)[0]

    def run():
        told = wrk(running.port, "/page/0", row.connections, seconds, load_core, (row.kind, etag or "-", uuid.uuid4().hex[:8]))
        if row.kind == "miss":
            # What a server does behind its answers (compressing, writing to its disk) is a part of what the misses cost, and none of the next cell's.
            machine.rest(running.pids())
        return told

    cell, told = sample(f"{server.title}, {row.name}", running, server_core, count_instructions, run)
    asked = client.origin_counts(origin_port)[0] - asked_before
    cell.faults = faults(server, row, cell, told["bytes"] / cell.requests, asked)
    return cell


def every_number(cells):
    """{(row, server's name): [cell of each round]} as JSON can hold it."""
    return [{"row": row.name, "server": name, "round": at, **dataclasses.asdict(cell)} for (row, name), rounds in cells.items() for at, cell in enumerate(rounds, 1)]


def errors_in_words(cell):
    return "wrk counted " + ", ".join(f"{count} {'answers not 2xx or 3xx' if name == 'status' else name + ' errors'}" for name, count in cell.errors.items())


def faults(server, row, cell, bytes_each, asked):
    """What makes a cell worthless, in words: wrk alone would not notice a cache that does not cache."""
    found = []
    if cell.errors:
        found.append(errors_in_words(cell))
    if row.kind == "304" and bytes_each > 1000:
        found.append(f"{bytes_each:.0f} bytes an answer: not 304")
    if row.kind != "304" and bytes_each < PAGE_BYTES * 0.98:
        found.append(f"{bytes_each:.0f} bytes an answer: not the page")
    if not server.caches:
        return found
    if row.kind in ("hit", "browsers", "304") and asked > cell.requests * 0.001:
        found.append(f"the origin was asked {asked} times during hits")
    # wrk does not count the answers that were under way when its time was over.
    if row.kind in ("miss", "pass") and asked < cell.requests:
        found.append(f"the origin was asked only {asked} times for {cell.requests} requests")
    return found
