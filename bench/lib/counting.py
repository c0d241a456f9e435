"""The untimed passes: what stays the same on a noisy machine.

System calls per request (strace) and user-space instructions per request (callgrind), each for a fixed number of requests on 8 keep-alive
connections. Servers that make the same system calls make the kernel work alike, so these two tell what a hardware counter would.
"""

import re
import signal
import subprocess
import time

import client
import machine

CONNECTIONS = 8
# A thousand pages are compressed behind the requests that brought them, thirty times slower than without valgrind.
REST_SECONDS = 300
# valgrind counts `rep movsb`, by which glibc copies pages, as one instruction for each byte; with vectors it is one for each 32, about what the work is.
COPY_BY_VECTORS = "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824"


def syscalls(running, name, ask, count):
    """(calls per request, {name: calls per request}) of all processes of a server while `ask()` sends it `count` requests; None if strace fails."""
    report = running.folder / f"strace-{name}"
    attach = [argument for pid in running.pids() for argument in ("-p", str(pid))]
    strace = subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-o", report, *attach], stderr=subprocess.PIPE, text=True)
    # It says "attached" once for each process; requests sent earlier would not be counted.
    for _ in range(len(running.pids())):
        if "attached" not in strace.stderr.readline():
            strace.kill()
            strace.wait()
            return None
    try:
        ask()
        time.sleep(0.2)  # what the server still does for the last answers, its log for one
    finally:
        strace.send_signal(signal.SIGINT)
        strace.communicate()
    calls = {}
    for line in report.read_text().splitlines():
        found = re.fullmatch(r"\s*(\d+)\s+(\w+)\s*", line)
        if found and found[2] != "total":
            calls[found[2]] = int(found[1]) / count
    return (sum(calls.values()), calls) if calls else None


def dump(running, folder, name):
    """Has callgrind write down what was counted since it did so last, and returns the sum over the server's processes."""
    # Its helpers, if it has any, are not counted; who is has a file from the beginning.
    pids = [pid for pid in running.pids() if (folder / f"callgrind.out.{pid}").exists()]
    for pid in pids:
        # "-d" wakes a server that waits, and returns before the file is written.
        subprocess.run(["callgrind_control", f"--dump={name}", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    total, end = 0, time.monotonic() + 60
    for pid in pids:
        while not (found := summary(folder, pid, name)) and time.monotonic() < end:
            time.sleep(0.1)
        total += found or 0
    return total


def summary(folder, pid, name):
    for file in folder.glob(f"callgrind.out.{pid}.*"):
        text = file.read_text(errors="replace")
        found = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if found and f"Trigger: dump {name}\n" in text:
            return int(found[1])
    return None


def user_instructions(server, site, core, name, count, prepare, ask):
    """User-space instructions per request; None where valgrind cannot run the server.

    Two passes in one run, with `count` requests and with twice as many: what is done once in a pass (connections are made, handshakes shaken, a timer goes off) is
    in both and cancels out. `prepare(port)` brings the server into the state that is measured, and what it returns goes to `ask(port, prepared, count)`.
    """
    if not server.callgrind:
        return None
    folder = site.folder / f"callgrind-{server.name}-{name}"
    folder.mkdir()
    wrap = ["env", f"GLIBC_TUNABLES={COPY_BY_VECTORS}", "valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out.%p"]
    try:
        running = server.start(site, core, wrap=wrap, single=True, seconds=60)
    except SystemExit as why:
        machine.say(f"  {server.title} does not run under valgrind: {str(why).splitlines()[0]}")
        return None
    try:
        prepared = prepare(running.port)
        machine.rest(running.pids(), REST_SECONDS)
        dump(running, folder, "prepared")
        totals = []
        for times in (1, 2):
            ask(running.port, prepared, count * times)
            machine.rest(running.pids(), REST_SECONDS)
            totals.append(dump(running, folder, f"pass-{times}"))
    except (OSError, ValueError) as why:
        machine.say(f"  {server.title} under valgrind: {why}")
        return None
    finally:
        running.stop(60)
    once, twice = totals
    return (twice - once) / count if 0 < once < twice else None


MORE_PAGES = 3000


def memory(server, site, core, idle_connections):
    """[(RSS, PSS)] empty, with the 1,000 pages stored, with 3,000 more, and with idle connections each of which has made one request.

    A page's own cost is that of the 3,000 more: what the first request makes (buffers, connections to the origin) is there by then."""
    running = server.start(site, core)
    open_ones = []
    try:
        measured = []
        def note():
            time.sleep(1)  # allocators and background threads come to rest
            machine.rest(running.pids())
            measured.append(machine.memory_bytes(running.pids()))
        note()
        if server.name == "floor":
            client.get(running.port, "/")
        else:
            client.fill(running.port)
        note()
        if server.caches:
            client.fill(running.port, range(client.PAGES, client.PAGES + MORE_PAGES))
        note()
        for number in range(idle_connections):
            connection = client.Connection(running.port)
            connection.get(f"/page/{number % client.PAGES}")
            open_ones.append(connection)
        note()
        return measured
    finally:
        for connection in open_ones:
            connection.close()
        running.stop()
