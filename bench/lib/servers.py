"""The measured servers: how each is started, and what it can be asked.

Every server gets its own folder for its files and one port on the loopback address, is pinned to one core, and is ended by its process id.
"""

import ctypes
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import machine

PAGES = 1000
PAGE_BYTES = 8192
KINDS = ("hit", "browsers", "304", "miss", "pass")


class SecurePort(int):
    """A port behind which TLS is spoken: whoever connects must know."""


def pinned(core):
    """For the child before it becomes the server: one core, and no life after this script."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def prepare():
        if core is not None:
            os.sched_setaffinity(0, {core})
        PR_SET_PDEATHSIG = 1
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def wait_for_port(port, process, seconds, log, pause):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                return
        time.sleep(pause)
    sys.exit(f"{process.args[0]} does not listen on {port} after {seconds} s; its words:\n{log.read_text()[-2000:]}")


@dataclasses.dataclass
class Running:
    """A started process, with its port and its folder."""

    process: subprocess.Popen
    port: int
    folder: pathlib.Path

    def pids(self):
        return machine.tree(self.process.pid)

    def stop(self, seconds=10):
        pids = self.pids()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # Its own children normally went with it. A number that now belongs to something else has another parent.
        for pid in pids[1:]:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                continue
            self._end_child(pid)

    def _end_child(self, pid):
        """A worker gets a moment to follow its parent, then is killed, if it is still a process that works in our folder or for our program."""
        for _ in range(20):
            time.sleep(0.05)
            try:
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                return
            if not command:
                return
        name = pathlib.Path(self.process.args[0]).name.encode()
        if name in command or str(self.folder).encode() in command:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def launch(command, port, folder, core, environment=None, seconds=15, pause=0.05):
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "output.log"
    with log.open("wb") as out:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder,
                                   env=dict(os.environ, **(environment or {})), preexec_fn=pinned(core))
    try:
        wait_for_port(port, process, seconds, log, pause)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Running(process, port, folder)


@dataclasses.dataclass
class Server:
    """One column of the comparison. `command(site, port, folder, single)` returns the command line; `single` asks for one process, if it can."""

    name: str
    title: str
    kinds: tuple
    command: object
    log: str
    callgrind: bool = True
    caches: bool = True
    remembers: bool = True  # takes part in the memory table

    def start(self, site, core, wrap=(), single=False, seconds=15):
        port = SecurePort(machine.free_port()) if site.tls else machine.free_port()
        folder = site.new_folder(self.name)
        command = [*wrap, *self.command(site, port, folder, single)]
        # Seawall's disk tier goes where XDG says; into the folder that is thrown away.
        return launch(command, port, folder, core, {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder)}, seconds)


@dataclasses.dataclass
class Site:
    """What all servers of one measurement share: the temporary folder, the origin's port, the pages as files; and where TLS is spoken, the certificate."""

    folder: pathlib.Path
    origin: int
    files: int
    page: pathlib.Path = None
    tls: object = None

    def new_folder(self, name):
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))
        folder.chmod(0o755)
        return folder

    def write_pages(self):
        """The 1,000 pages for the servers that serve files. One size and one time, so that their ETag is the same for all."""
        pages = self.folder / "pages/page"
        pages.mkdir(parents=True)
        for number in range(PAGES):
            text = f"<!doctype html><title>Page {number}</title>\n<p>".encode()
            (pages / str(number)).write_bytes(text + b"quiet garden morning " * 400 + b"." * PAGE_BYTES)
            os.truncate(pages / str(number), PAGE_BYTES)
            os.utime(pages / str(number), (1_767_225_600, 1_767_225_600))


def tls_settings(pair, kind, program):
    """What a peer's configuration says about TLS: beside the port, and about the certificate. Nothing where plain HTTP is spoken."""
    if not pair:
        return "", ""
    if kind == "h2o":
        # Its default keeps the keys in a process of their own, which costs two system calls a signature and more.
        return "", f"ssl: {{ certificate-file: {pair.certificate}, key-file: {pair.key}, minimum-version: TLSv1.2, neverbleed: OFF }}"
    # Tickets are on by default and keep the sessions with the clients; a store of them besides would cost every handshake.
    certificate = f"ssl_certificate {pair.certificate}; ssl_certificate_key {pair.key}; ssl_protocols TLSv1.2 TLSv1.3;"
    # Since 1.25.1 HTTP/2 is a directive of its own.
    return (" ssl", f"http2 on; {certificate}") if machine.nginx_version(program) >= (1, 25, 1) else (" ssl http2", certificate)


def configured(site, port, folder, template, program="nginx"):
    """Writes a peer's configuration into its folder with the names in @...@ filled in."""
    root = os.geteuid() == 0
    kind = "h2o" if template.startswith("h2o") else "nginx"
    user = "" if not root else ("user: root" if kind == "h2o" else "user root;")
    text = (machine.BENCH / "peers" / template).read_text()
    listen, certificate = tls_settings(site.tls, kind, program)
    values = {"TLS": listen, "CERTIFICATE": certificate, "USER": user, "FILES": site.files, "DIR": folder, "PORT": port, "ORIGIN": site.origin, "PAGES": site.folder / "pages"}
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    target = folder / template
    target.write_text(text)
    if kind == "nginx":
        # The folders compiled into nginx are root's; these are ours.
        names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        (folder / "paths.conf").write_text("".join(f"{name}_temp_path {folder}/tmp-{name};\n" for name in names))
    return target


def nginx(template, program="nginx"):
    """`program`: which nginx, as there can be two of them."""
    def command(site, port, folder, single):
        directives = "daemon off;" + (" master_process off;" if single else "")
        return [program, "-p", folder, "-c", configured(site, port, folder, template, program), "-e", folder / "error.log", "-g", directives]
    return command


def with_newest_nginx(all_servers, templates):
    """The servers, and behind each nginx of `templates` ({name: configuration}) the newest nginx with the same configuration, if there is one."""
    program = machine.newest_nginx()
    found = []
    for server in all_servers:
        found.append(server)
        if program and server.name in templates:
            version = ".".join(map(str, machine.nginx_version(program)))
            found.append(dataclasses.replace(server, name=f"{server.name}-new", title=server.title.replace("nginx", f"nginx {version}", 1),
                                             command=nginx(templates[server.name], program)))
    return found


def h2o(template):
    def command(site, port, folder, single):
        return ["h2o", "-m", "worker", "-c", configured(site, port, folder, template)]
    return command


def haproxy(site, port, folder, single):
    return ["haproxy", "-db", "-f", configured(site, port, folder, "haproxy.cfg")]


def varnish(site, port, folder, single):
    return ["varnishd", "-F", "-j", "none", "-n", folder / "work", "-a", f"127.0.0.1:{port}", "-T", "none", "-f", configured(site, port, folder, "varnish.vcl"),
            "-s", "malloc,256m", "-p", "timeout_idle=75", "-p", "listen_depth=4096"]


def seawall(site, port, folder, single, plain=False):
    # As it ships, but for the cap on requests at the origin (256): none of the others has one. It is told what the origin is, as its questions would be among the
    # requests that the origin counts.
    settings = folder / "seawall.toml"
    cache = {"hold": getattr(site, "hold", None), "disk": "0" if plain else None}
    lines = "".join(f'{key} = "{value}"\n' for key, value in cache.items() if value is not None)
    compress = "[compress]\nenabled = false\n" if plain else ""
    settings.write_text(f"[cache]\n{lines}{compress}[origin]\nconcurrency = 2000\nqueue = 2000\n")
    return [machine.SEAWALL, "serve", "--config", settings, "--kind", "generic", f"http://127.0.0.1:{site.origin}", *seawall_listens(site, port), "--admin", "off", "--workers", "1",
            "--access-log", folder / "access.log", "--log-format", "combined"]


def seawall_plain(site, port, folder, single):
    return seawall(site, port, folder, single, plain=True)


def seawall_listens(site, port):
    if not site.tls:
        return ["--listen", f"127.0.0.1:{port}"]
    return ["--tls-listen", f"127.0.0.1:{port}", "--tls-cert", site.tls.certificate, "--tls-key", site.tls.key, "--listen", "127.0.0.1:0"]


def floor(mode):
    def command(site, port, folder, single):
        return [machine.compile_c("floor"), port, *mode]
    return command


def floor_of_page(site, port, folder, single):
    return [machine.compile_c("floor"), port, site.page]


ALL = with_newest_nginx([
    Server("floor", "the floor", ("hit", "browsers"), floor([]), "none", caches=False),
    Server("floor-pages", "the floor, with 1,000 pages", ("hit",), floor(["pages"]), "none", caches=False, remembers=False),
    Server("floor-304", "the floor, 304", ("304",), floor(["not-modified"]), "none", caches=False, remembers=False),
    Server("seawall", "Seawall", KINDS, seawall, "to a file"),
    # What HAProxy and Varnish do with a page; as it ships, it also writes it to a file, as nginx does, and compresses it, as none of them does.
    Server("seawall-plain", "Seawall, no disk tier, no gzip", ("miss",), seawall_plain, "to a file", remembers=False),
    Server("nginx-cache", "nginx proxy_cache", KINDS, nginx("nginx-cache.conf"), "to a file, buffered 64 KB"),
    Server("nginx-static", "nginx static", ("hit", "browsers", "304"), nginx("nginx-static.conf"), "to a file, buffered 64 KB", caches=False),
    Server("h2o", "h2o static", ("hit", "browsers", "304"), h2o("h2o.conf"), "off, its default", caches=False),
    Server("haproxy", "HAProxy cache", KINDS, haproxy, "off, as is customary"),
    # Its manager compiles the rules and starts the cache as a child: valgrind would follow the compiler too.
    Server("varnish", "Varnish", KINDS, varnish, "in memory only, as is customary", callgrind=False),
], {"nginx-cache": "nginx-cache.conf", "nginx-static": "nginx-static.conf"})

FLOOR_OF_PAGE = Server("floor", "the floor", ("hit",), floor_of_page, "none", caches=False)
GHOST_RECIPES = with_newest_nginx([Server("nginx-ghost", "nginx, published recipe", KINDS, nginx("nginx-ghost.conf"), "to a file, buffered 64 KB")],
                                  {"nginx-ghost": "nginx-ghost.conf"})
TOOLS = {"floor": [], "floor-304": [], "floor-pages": [], "seawall": [], "seawall-plain": [], "nginx-cache": ["nginx"], "nginx-static": ["nginx"], "nginx-ghost": ["nginx"], "h2o": ["h2o"],
         "haproxy": ["haproxy"], "varnish": ["varnishd", "gcc"], "nginx-cache-new": [], "nginx-static-new": [], "nginx-ghost-new": []}


def chosen(names):
    """The servers with these names; the floor's other forms come along with it."""
    if names is None:
        return list(ALL)
    wanted = set(names) | ({"floor-304", "floor-pages"} if "floor" in names else set())
    unknown = wanted - {server.name for server in ALL}
    if unknown:
        sys.exit(f"no such server: {', '.join(sorted(unknown))}; there are {', '.join(server.name for server in ALL)}")
    return [server for server in ALL if server.name in wanted]


def start_origin(site_folder, core, options=()):
    port = machine.free_port()
    return launch([machine.compile_c("origin"), port, *options], port, site_folder / "origin", core)
