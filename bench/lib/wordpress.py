"""A copy of the WordPress that the tests use, with its own MariaDB and php-fpm."""

import collections.abc
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

import machine
import servers

TESTS = machine.ROOT / "crates/seawall/tests/wordpress"


@dataclasses.dataclass
class Place:
    """A WordPress: its folder, the socket of php-fpm, the host that its readers ask for."""

    root: pathlib.Path
    socket: pathlib.Path
    host: str
    # Of a copy that was started here.
    php: subprocess.Popen | None = None
    start_php: collections.abc.Callable[[], subprocess.Popen] | None = None


def installed():
    """Where `make wordpress` puts it."""
    caches = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(os.environ.get("SEAWALL_WORDPRESS_DIR") or caches / "seawall-wordpress")


def wait(what, ready, process, log, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if ready():
            return
        time.sleep(0.1)
    sys.exit(f"{what} does not answer:\n{log.read_text()[-2000:]}")


def start(folder, stack):
    """Starts a copy of the WordPress of the tests, with four children of php-fpm; all of it ends with the stack."""
    subprocess.run([TESTS / "bring-up"], check=True)
    place = installed()
    root, database, php = folder / "htdocs", folder / "mariadb.sock", folder / "php.sock"
    shutil.copytree((place / "current").resolve(), root)
    shutil.copytree(place / "blog/uploads", root / "wp-content/uploads", dirs_exist_ok=True)
    shutil.copytree(TESTS / "theme", root / "wp-content/themes/seaside", dirs_exist_ok=True)
    shutil.copytree(place / "blog/db", folder / "db")
    config = (TESTS / "wp-config.php").read_text().replace("@URL@", "http://blog.example").replace("@DATABASE@", "pristine").replace("@SOCKET@", str(database))
    (root / "wp-config.php").write_text(config)
    (root / "wp-config-more.php").write_text("<?php\ndefine( 'DISABLE_WP_CRON', true );\n")
    as_root = "user = root\ngroup = root\n" if os.geteuid() == 0 else ""
    (folder / "php.conf").write_text(f"[global]\nerror_log = {folder}/php.log\ndaemonize = no\n[blog]\n{as_root}listen = {php}\nlisten.backlog = 511\npm = static\n"
                                     "pm.max_children = 4\nphp_admin_value[memory_limit] = 256M\n")
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    def launch(name, command, ready):
        log = folder / f"{name}.out"
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.STDOUT, preexec_fn=servers.pinned(None))
        stack.callback(lambda: (process.terminate(), process.wait()))
        wait(name, ready, process, log)
        return process

    def answers():
        return subprocess.run(["mariadb", "--no-defaults", "--user=root", f"--socket={database}", "-e", "SELECT 1"], capture_output=True).returncode == 0

    def start_php():
        return launch("php-fpm", [place / "php-fpm", "-F", "-y", folder / "php.conf", *(["-R"] if as_root else [])], php.is_socket)

    launch("mariadbd", ["mariadbd", "--no-defaults", f"--user={user}", f"--datadir={folder}/db", f"--socket={database}", f"--pid-file={folder}/db.pid", "--skip-networking",
                        "--performance-schema=OFF", "--character-set-server=utf8mb4", "--innodb-log-file-size=32M", f"--tmpdir={folder}"], answers)
    return Place(root, php, "blog.example", start_php(), start_php)
