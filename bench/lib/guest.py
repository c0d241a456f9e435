"""A simulated machine whose clock counts instructions: booted by `bench/instructions`, which also starts this file inside.

Outside, `run` boots a Debian kernel with this machine's files, read-only, beneath a folder in memory. Inside, `main` starts the servers one after the other and lets wrk ask
them; a process's time there is its number of instructions.
"""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

if __name__ == "__main__":
    sys.dont_write_bytecode = True

import client
import load
import machine
import servers

KERNEL = machine.OUT / "kernel"
MODULES = ("drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci_legacy_dev",
           "drivers/virtio/virtio_pci", "fs/netfs/netfs", "fs/fscache/fscache", "net/9p/9pnet", "net/9p/9pnet_virtio", "fs/9p/9p", "fs/overlayfs/overlay")
# One simulated processor, an instruction a nanosecond, and no waiting for a timer when there is nothing to do. The two features are ways to copy whose
# iterations would be counted, eight times as many as with what the kernel uses instead.
PROCESSOR = ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-smp", "1", "-cpu", "max,-erms,-fsrm")
INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mkdir -p /proc /sys /dev /lower /up /root-of-all
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
for module in {modules}; do $b insmod /modules/$module.ko || echo "$module: not loaded"; done
options=trans=virtio,version=9p2000.L,msize=512000
$b mount -t 9p -o $options,ro,cache=loose root /lower
$b mount -t tmpfs up /up; $b mkdir /up/changes /up/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/up/changes,workdir=/up/work all /root-of-all
$b mkdir -p /dev/shm /root-of-all/out
for folder in proc sys dev; do $b mount --bind /$folder /root-of-all/$folder; done
$b mount -t tmpfs shm /root-of-all/dev/shm; $b mount -t tmpfs run /root-of-all/run
$b mount -t 9p -o $options,cache=none out /root-of-all/out
$b ip link set lo up
ulimit -n 65536
$b chroot /root-of-all /bin/sh /out/inside.sh
$b poweroff -f
"""


@dataclasses.dataclass(frozen=True)
class Kernel:
    image: pathlib.Path
    modules: pathlib.Path
    version: str


def kernel():
    """Debian's newest kernel, downloaded once and only unpacked: nothing is installed."""
    images = sorted(KERNEL.glob("boot/vmlinuz-*"))
    if not images:
        depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True)
        found = re.search(r"Depends: (linux-image-\S+)", depends.stdout)
        if not found:
            sys.exit("apt-cache knows no linux-image-amd64: this needs a Debian on x86-64, and `apt-get update` once")
        machine.say(f"downloading {found[1]}")
        KERNEL.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="seawall-kernel-") as folder:
            subprocess.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", found[1]], cwd=folder, check=True)
            subprocess.run(["dpkg-deb", "-x", *pathlib.Path(folder).glob("*.deb"), KERNEL], check=True)
        images = sorted(KERNEL.glob("boot/vmlinuz-*"))
    version = images[-1].name.removeprefix("vmlinuz-")
    return Kernel(images[-1], KERNEL / "lib/modules" / version / "kernel", version)


def qemu_version():
    told = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\S+)", told)
    return f"QEMU {found[1]}" if found else "QEMU"


def write_first_files(chosen, archive):
    """The files the kernel begins with: busybox, the modules, and the script that mounts everything else."""
    with tempfile.TemporaryDirectory(prefix="seawall-first-") as folder:
        folder = pathlib.Path(folder)
        for name in ("bin", "modules"):
            (folder / name).mkdir()
        busybox = subprocess.run(["which", "busybox"], capture_output=True, text=True, check=True).stdout.strip()
        (folder / "bin/busybox").write_bytes(pathlib.Path(busybox).read_bytes())
        (folder / "bin/busybox").chmod(0o755)
        for module in MODULES:
            (folder / "modules" / f"{pathlib.Path(module).name}.ko").write_bytes((chosen.modules / f"{module}.ko").read_bytes())
        (folder / "init").write_text(INIT.format(modules=" ".join(pathlib.Path(module).name for module in MODULES)))
        (folder / "init").chmod(0o755)
        names = "\n".join(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")))
        with archive.open("wb") as out:
            subprocess.run(["busybox", "cpio", "-o", "-H", "newc"], input=names.encode(), stdout=out, stderr=subprocess.DEVNULL, cwd=folder, check=True)


def run(chosen, folder, command, environment, seconds):
    """Boots, runs `command` inside with `folder` as /out, and waits for the end. What is said inside goes to stderr."""
    lines = [f"export {name}='{value}'" for name, value in environment.items()]
    (folder / "inside.sh").write_text("\n".join([*lines, " ".join(f"'{word}'" for word in command)]) + "\n")
    archive = folder / "first.cpio"
    write_first_files(chosen, archive)
    shares = [option for tag, path, more in (("root", "/", ",readonly=on"), ("out", folder, ""))
              for option in ("-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{more}")]
    subprocess.run(["qemu-system-x86_64", *PROCESSOR, "-m", "4096", "-nodefaults", "-nographic", "-serial", "stdio", "-no-reboot", "-kernel", chosen.image,
                    "-initrd", archive, "-append", "console=ttyS0 quiet panic=-1 tsc=reliable", *shares],
                   stdin=subprocess.DEVNULL, stdout=sys.stderr, timeout=seconds, check=True)


def spent(pids):
    """Instructions of the processes so far: nanoseconds on the processor, of each thread."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            total += int(task.read_text().split()[0])
    return total


def count(server, site, rows, seconds):
    """{"SERVER ROW": instructions a request}"""
    counts = {}
    running = server.start(site, 0, seconds=600)
    try:
        etag = client.verify(server, running.port)
        if server.caches:
            client.fill(running.port)
        for row in rows:
            if row.kind not in server.kinds:
                continue
            machine.rest(running.pids())
            # Twice: what is done when a page is asked for the first time is not what is counted.
            for name in ("before", "counted"):
                begun = spent(running.pids())
                told = load.wrk(running.port, "/page/0", row.connections, seconds, 0, (row.kind, etag or "-", f"{name}-{row.connections}"))
                machine.rest(running.pids())
            failed = {name: told[name] for name in ("connect", "read", "write", "status", "timeout") if told[name]}
            if failed:
                sys.exit(f"{server.title}, {row.name}: wrk counted {failed}")
            counts[f"{server.name} {row.name}"] = (spent(running.pids()) - begun) / told["requests"]
            machine.say(f"{server.name:14} {row.name:8} {counts[f'{server.name} {row.name}']:10,.0f} instructions a request")
    finally:
        running.stop()
    return counts


def main():
    out = pathlib.Path(sys.argv[1])
    work = json.loads((out / "work.json").read_text())
    # Nobody interrupts whoever works: server and client take turns, and find many requests each time, as on a busy machine.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    folder = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    folder.chmod(0o755)
    files = machine.raise_file_limit()
    origin = servers.start_origin(folder, 0)
    site = servers.Site(folder, origin.port, files)
    site.write_pages()
    counts = {}
    for server in servers.chosen(work["servers"]):
        counts |= count(server, site, [load.Row.parse(name) for name in work["rows"]], work["seconds"])
    (out / "counts.json").write_text(json.dumps(counts))
    origin.stop()


if __name__ == "__main__":
    main()
