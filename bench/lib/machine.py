"""The machine: its tools, its facts, its processes.

Everything here reads /proc or asks a tool; nothing knows about HTTP or about any of the measured servers.
"""

import datetime
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
OUT = BENCH / "out"
# SEAWALL_BIN names another build, to compare two of them.
SEAWALL = pathlib.Path(os.environ.get("SEAWALL_BIN") or pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release/seawall")

PACKAGES = {
    "gcc": "gcc libc6-dev", "openssl": "openssl libssl-dev", "h2load": "nghttp2-client", "wrk": "wrk", "ab": "apache2-utils", "nginx": "nginx-light", "varnishd": "varnish", "haproxy": "haproxy", "h2o": "h2o",
    "taskset": "util-linux", "perf": "linux-perf", "valgrind": "valgrind", "strace": "strace",
    "qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "dpkg-deb": "dpkg",
    "gzip": "gzip", "brotli": "brotli", "zstd": "zstd",
    "apache2": "apache2-bin", "squid": "squid", "traffic_server": "trafficserver", "git": "git", "openssl": "openssl",
}


def say(text):
    """Progress goes to stderr: stdout is for results."""
    print(text, file=sys.stderr, flush=True)


def end_cleanly():
    """SIGTERM ends the script as Ctrl-C does: what it started is stopped, its folder removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))


def need_seawall(servers):
    if any(server.name.startswith("seawall") for server in servers) and not SEAWALL.exists():
        sys.exit(f"{SEAWALL} is missing: cargo build --release -p seawall first (or leave it out with --only)")


def need(tools):
    """Makes sure that the tools are there: installs them as root, otherwise ends with the command that would."""
    # Debian keeps servers in sbin, which is not on everyone's path.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [tool for tool in tools if not shutil.which(tool)]
    if not missing:
        return
    packages = sorted({package for tool in missing for package in PACKAGES[tool].split()})
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(f"missing: {', '.join(missing)}; install them first: sudo apt-get install --no-install-recommends {' '.join(packages)}")
    say(f"installing {' '.join(packages)}")
    # A package must not start its service: it would take a port and a core. Debian's convention for that is policy-rc.d.
    policy = pathlib.Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False, stdout=subprocess.DEVNULL)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], env=environment, check=True, stdout=subprocess.DEVNULL)
    finally:
        if ours:
            policy.unlink()
    still = [tool for tool in missing if not shutil.which(tool)]
    if still:
        sys.exit(f"still missing after the installation: {', '.join(still)}")


def compile_c(name, *libraries):
    """bench/c/NAME.c -> bench/out/NAME, when the source is newer; `libraries` as gcc takes them."""
    source, program = BENCH / f"c/{name}.c", OUT / name
    OUT.mkdir(exist_ok=True)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["gcc", "-O2", "-Wall", "-o", program, source, *libraries], check=True)
    return program


def raise_file_limit(wanted=65536):
    """Returns the number of files a process may now have open; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (max(wanted, hard), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            break
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tree(pid):
    """The process and everything below it."""
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        for children in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            try:
                todo += [int(child) for child in children.read_text().split()]
            except OSError:
                pass  # ended meanwhile
    return found


def cpu_seconds(pids):
    """User and system time used so far by the processes."""
    ticks = 0
    for pid in pids:
        try:
            # The name, in parentheses, may hold spaces: count from its end.
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def awake(pids):
    """Whether one of their threads works, or would if it had a core: on a busy machine that can be a while."""
    for pid in pids:
        for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                if stat.read_text().rpartition(")")[2].split()[0] in "RD":
                    return True
            except OSError:
                continue  # ended meanwhile
    return False


def rest(pids, seconds=60):
    """Waits until the processes do nothing any more: what some do behind an answer (compressing it, say) is not part of the next one."""
    end, used, since = time.monotonic() + seconds, -1.0, 0.0
    while time.monotonic() < end:
        now, before = cpu_seconds(pids), used
        if now - before > 0.02 or awake(pids):
            used, since = now, time.monotonic()
        elif time.monotonic() - since > 0.5:
            return
        time.sleep(0.1)


def memory_folder():
    """Where temporary folders cost no file system its search for room, if there is such a place with 4 GB left; else None, the usual one."""
    place = pathlib.Path("/dev/shm")
    try:
        return place if os.access(place, os.W_OK) and shutil.disk_usage(place).free > 4 << 30 else None
    except OSError:
        return None


def core_seconds(core):
    """Time that the core has spent on processes since the machine started, whoever they were."""
    text = pathlib.Path("/proc/stat").read_text()
    user, nice, system = re.search(rf"^cpu{core} (\d+) (\d+) (\d+)", text, re.M).groups()
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pids):
    """(RSS, PSS) summed; pages that processes share count several times in the first and once in the second."""
    rss = pss = 0
    for pid in pids:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        rss += int(re.search(r"^Rss:\s+(\d+)", text, re.M)[1]) * 1024
        pss += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) * 1024
    return rss, pss


def counts_instructions():
    """Whether the hardware's instruction counter can be read here; virtual machines often have none."""
    if not shutil.which("perf"):
        return False
    asked = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u,instructions:k", "true"], capture_output=True, text=True)
    lines = [line for line in asked.stderr.splitlines() if "instructions" in line]
    return asked.returncode == 0 and len(lines) == 2 and all(line.split(",")[0].isdigit() for line in lines)


def first_line(command, pattern):
    """The version that a tool prints, or "?"."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return "?"
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "?"


def versions():
    return {
        "nginx": first_line(["nginx", "-v"], r"nginx/(\S+)"),
        "h2o": first_line(["h2o", "-v"], r"version (\S+)"),
        "HAProxy": first_line(["haproxy", "-v"], r"version (\S+)"),
        "Varnish": first_line(["varnishd", "-V"], r"varnish-(\S+)"),
        "Seawall": first_line([SEAWALL, "--version"], r"(\d\S*)") if SEAWALL.exists() else "not built",
        "wrk": first_line(["wrk", "-v"], r"wrk (\S+)"),
        "h2load": first_line(["h2load", "--version"], r"nghttp2/(\S+)"),
        "OpenSSL": first_line(["openssl", "version"], r"OpenSSL (\S+)"),
    }


def facts(arguments):
    """What a reader must know to judge the numbers, as (name, value) pairs."""
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "-C", ROOT, "status", "--porcelain"], capture_output=True, text=True).stdout.strip()
    return [
        ("machine", f"{os.cpu_count()} cores, {model[1] if model else platform.machine()}, Linux {platform.release()}"),
        ("load average at the start", " ".join(f"{load:.1f}" for load in os.getloadavg()) + " (above 0.5: other work was running, distrust the times)"),
        ("commit", (commit or "none yet") + (" with local changes" if changed else "")),
        ("date", datetime.date.today().isoformat()),
        ("command", " ".join(arguments)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
    ]
