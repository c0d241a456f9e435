"""A copy of the Ghost that the tests use, which counts what reaches it."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

BENCH = pathlib.Path(__file__).resolve().parent.parent
TESTS = BENCH.parent / "crates/seawall/tests/ghost"


def free_port(besides=None):
    """A port below those that the system gives to clients. `besides` is meant for another server, which does not listen yet."""
    for port in range(20000 + os.getpid() % 9000, 32000):
        if port == besides:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    sys.exit("no free port")


def installed():
    folder = os.environ.get("SEAWALL_GHOST_DIR") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "seawall-ghost")
    return pathlib.Path(folder)


def lay_over(config, more):
    for key, value in more.items():
        if isinstance(value, dict):
            lay_over(config.setdefault(key, {}), value)
        else:
            config[key] = value


class Ghost:
    """`url`: the address that readers use, in front of it. `prefix`: words in front of its command, as taskset."""

    def __init__(self, folder, url, prefix=()):
        subprocess.run([TESTS / "bring-up"], check=True)
        self.port, self.folder, self.counted = free_port(besides=urllib.parse.urlsplit(url).port), folder, folder / "count"
        shutil.copytree(installed() / "blog", folder / "ghost")
        content = folder / "ghost/content"
        config = json.loads((folder / "ghost/config.json").read_text())
        lay_over(config, {"url": url, "server": {"port": self.port}, "database": {"connection": {"filename": f"{content}/data/ghost.db"}},
                          "paths": {"contentPath": f"{content}/"}, "logging": {"path": f"{content}/logs/"}})
        (folder / "ghost/config.production.json").write_text(json.dumps(config))
        (folder / "ghost/current").symlink_to(os.path.realpath(installed() / "current"))
        self.facts = json.loads((folder / "ghost/blog.json").read_text())
        self.process = subprocess.Popen(
            [*prefix, installed() / "node", "--require", TESTS / "loopback.cjs", "--require", BENCH / "lib/count.cjs", "current/index.js"], cwd=folder / "ghost",
            env={**os.environ, "NODE_ENV": "production", "COUNT_FILE": str(self.counted)}, stdin=subprocess.PIPE,
            stdout=open(folder / "ghost.log", "w"), stderr=subprocess.STDOUT)
        wait(f"http://127.0.0.1:{self.port}/ghost/api/admin/site/", self.process, folder / "ghost.log", {"X-Forwarded-Proto": urllib.parse.urlsplit(url).scheme})

    def count(self):
        time.sleep(0.5)  # it writes every 0.2 s
        return int(self.counted.read_text() or 0)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def wait(url, process, log, fields=None):
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            if urllib.request.urlopen(urllib.request.Request(url, headers=fields or {}), timeout=10).status == 200:
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not answer: {log.read_text()[-2000:]}")
