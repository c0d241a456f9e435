"""The machine: its tools, its facts, its processes.

Everything here reads /proc or asks a tool; nothing knows about HTTP or about any of the measured servers.
"""

import datetime
import hashlib
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
    "apache2": "apache2-bin", "squid": "squid", "traffic_server": "trafficserver", "git": "git",
    "curl": "curl", "nghttp": "nghttp2-client", "testssl": "testssl.sh", "chromium": "chromium", "go": "golang-go", "node": "nodejs",
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


QUIET_SHARE = 0.95
QUIET_SAMPLE_SECONDS = 2
QUIET_WAIT_SECONDS = 300


def processor_ticks():
    """(idle, all) of all cores since the machine started. What a hypervisor gave to others ("steal") is not idle: this machine did not have it."""
    # The last two, a guest's, are in the first two already.
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def ticks_by_process():
    """{(process id, name): ticks used so far} of everything that runs."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # ended meanwhile
        fields = rest.split()
        found[stat.parent.name, head.partition("(")[2]] = int(fields[11]) + int(fields[12])
    return found


def idleness(seconds=QUIET_SAMPLE_SECONDS):
    """(the share of all cores that was idle, the three busiest processes in words) of the next seconds."""
    idle_before, all_before = processor_ticks()
    used_before = ticks_by_process()
    time.sleep(seconds)
    idle, all_ticks = (now - before for now, before in zip(processor_ticks(), (idle_before, all_before)))
    used = {who: ticks - used_before.get(who, ticks) for who, ticks in ticks_by_process().items()}
    busiest = [f"{name} {ticks / (seconds * os.sysconf('SC_CLK_TCK')) * 100:.0f} %" for (_, name), ticks in sorted(used.items(), key=lambda one: -one[1])[:3] if ticks]
    return idle / max(1, all_ticks), ", ".join(busiest) or "nothing that can be named"


def wait_until_quiet(even_if_busy, wait_seconds=QUIET_WAIT_SECONDS):
    """The share of the processor that is idle before anything is measured. Waits for a quiet machine, and ends the run when it does not become one."""
    end = time.monotonic() + wait_seconds
    while True:
        share, busiest = idleness()
        if share > QUIET_SHARE or even_if_busy:
            return share
        if time.monotonic() > end:
            sys.exit(f"the machine is not quiet: for {wait_seconds} s it was never more than {QUIET_SHARE * 100:.0f} % idle, now {share * 100:.0f} % ({busiest}). "
                     "End what runs, or try the script with --even-if-busy: such results are not published")
        say(f"waiting for a quiet machine: {share * 100:.0f} % idle ({busiest}), {end - time.monotonic():.0f} s left")
        time.sleep(5)


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


# Where a newer nginx than the distribution's is put by those who build one or take nginx.org's.
NGINX_PLACES = ("/usr/local/nginx/sbin/nginx", "/usr/local/sbin/nginx", "/opt/nginx/sbin/nginx")


def nginx_version(program):
    """(1, 29, 3) for the program's 1.29.3; nothing when it does not say."""
    return tuple(int(part) for part in re.findall(r"\d+", first_line([program, "-v"], r"nginx/([\d.]+)")))


def newest_nginx():
    """NGINX_NEW, or an nginx in one of the usual places that is newer than the one on the path; None when there is none."""
    if given := os.environ.get("NGINX_NEW"):
        if not nginx_version(given):
            sys.exit(f"NGINX_NEW={given} is not an nginx that runs here")
        return given
    debian = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    newer = [place for place in NGINX_PLACES if os.access(place, os.X_OK) and place != debian and nginx_version(place) > (nginx_version(debian) if debian else ())]
    return max(newer, key=nginx_version, default=None)


def nginx_can(program, option):
    """Whether an nginx was built with this option of its configure script, as --with-http_v3_module."""
    return option in subprocess.run([program, "-V"], capture_output=True, text=True).stderr


def versions():
    found = {
        "Seawall": first_line([SEAWALL, "--version"], r"(\d\S*)") if SEAWALL.exists() else "not built",
        "nginx": first_line(["nginx", "-v"], r"nginx/(\S+)"),
        "nginx, newest": first_line([newest_nginx(), "-v"], r"nginx/(\S+)") if newest_nginx() else None,
        "h2o": first_line(["h2o", "-v"], r"version (\S+)"),
        "HAProxy": first_line(["haproxy", "-v"], r"version (\S+)"),
        "Varnish": first_line(["varnishd", "-V"], r"varnish-(\S+)"),
        "wrk": first_line(["wrk", "-v"], r"wrk (\S+)"),
        "h2load": first_line(["h2load", "--version"], r"nghttp2/(\S+)"),
        "OpenSSL": first_line(["openssl", "version"], r"OpenSSL (\S+)"),
    }
    return {name: version for name, version in found.items() if version not in (None, "?")}


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.*)", text)
    return (model[1] if model else platform.machine()) + (", a virtual machine" if re.search(r"^flags\s*:.*\bhypervisor\b", text, re.M) else "")


def commit():
    """What is measured, in words; what the measurements themselves write does not count as a change."""
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)bench/results", ":(exclude)BENCHMARKING.md")
    return (git("rev-parse", "--short", "HEAD") or "none yet") + (" with local changes" if changed else "")


def binary():
    """The first digits of the measured program's SHA-256: sections with the same ones measured the same program."""
    return hashlib.sha256(SEAWALL.read_bytes()).hexdigest()[:12] if SEAWALL.exists() else "none"


def facts(arguments):
    """What a reader must know to judge the numbers, as (name, value) pairs."""
    return [
        ("machine", f"{os.cpu_count()} cores, {processor()}, Linux {platform.release()}"),
        ("commit", commit()),
        ("program", binary()),
        ("date", datetime.date.today().isoformat()),
        ("command", " ".join(arguments)),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions().items())),
    ]
