"""The caches that the public test suite is run against: how each is started for it. Speed is no matter here; `servers.py` has the ones that are timed.

Each peer has what its documentation tells for a shared cache in front of one origin, in `peers/conformance/`. Where a default contradicts the gate of the suite
("what names no lifetime and has no validator is not reused"), on which most of the tests rest, it is set otherwise, and a comment beside it says so.
"""

import dataclasses
import os
import shutil

import machine
import servers

PEERS = machine.BENCH / "peers/conformance"


def write(site, port, folder, template, **more):
    """Puts a peer's configuration into its folder with the names in @...@ filled in."""
    values = {"DIR": folder, "PORT": port, "ORIGIN": site.origin, "USER": "", **more}
    text = (PEERS / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    target = folder / template
    target.write_text(text)
    return target


def given_to(folder, user):
    """Servers that root starts become a user of their own and have to write into their folder as that one."""
    if os.geteuid() == 0:
        shutil.chown(folder, user)
        return user
    return None


def nginx(site, port, folder, single):
    # The folders compiled into nginx are root's; these are ours.
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    (folder / "paths.conf").write_text("".join(f"{name}_temp_path {folder}/tmp-{name};\n" for name in names))
    config = write(site, port, folder, "nginx.conf", USER="user root;" if os.geteuid() == 0 else "")
    return ["nginx", "-p", folder, "-c", config, "-e", folder / "error.log", "-g", "daemon off;"]


def haproxy(site, port, folder, single):
    return ["haproxy", "-db", "-f", write(site, port, folder, "haproxy.cfg")]


def varnish(site, port, folder, single):
    return ["varnishd", "-F", "-j", "none", "-n", folder / "work", "-a", f"127.0.0.1:{port}", "-T", "none", "-f", write(site, port, folder, "varnish.vcl"),
            "-s", "malloc,256m", "-p", "default_ttl=0", "-p", "default_grace=0", "-p", "default_keep=3600"]


def squid(site, port, folder, single):
    user = given_to(folder, "proxy")
    return ["squid", "-N", "-f", write(site, port, folder, "squid.conf", USER=f"cache_effective_user {user}" if user else "")]


def httpd(site, port, folder, single):
    (folder / "cache").mkdir()
    user = given_to(folder / "cache", "www-data")
    config = write(site, port, folder, "httpd.conf", MODULES="/usr/lib/apache2/modules", USER=f"User {user}\nGroup {user}" if user else "")
    return ["apache2", "-D", "FOREGROUND", "-f", config]


def trafficserver(site, port, folder, single):
    for name in ("cache", "run", "log"):
        (folder / name).mkdir()
    write(site, port, folder, "records.config")
    write(site, port, folder, "remap.config")
    # Debian's own lets this machine use every method; without the file, nobody may use any.
    (folder / "ip_allow.yaml").write_text("ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n    methods: ALL\n")
    (folder / "storage.config").write_text(f"{folder}/cache 256M\n")
    # Where it looks for everything; what is not ours is where Debian has put it.
    places = {"prefix": "/usr", "bindir": "/usr/bin", "sbindir": "/usr/sbin", "libdir": "/usr/lib/trafficserver", "libexecdir": "/usr/lib/trafficserver/modules",
              "sysconfdir": folder, "datadir": folder, "localstatedir": folder, "runtimedir": folder / "run", "logdir": folder / "log", "cachedir": folder / "cache"}
    (folder / "runroot.yaml").write_text("".join(f"{name}: {place}\n" for name, place in places.items()))
    return ["traffic_server", f"--run-root={folder}/runroot.yaml"]


def seawall(settings):
    """Seawall as it ships, for a server of no known kind; `settings` are lines of its configuration file."""
    def command(site, port, folder, single):
        config = folder / "seawall.toml"
        config.write_text(settings)
        return [machine.SEAWALL, "serve", "--config", config, "--kind", "generic", f"http://127.0.0.1:{site.origin}", "--listen", f"127.0.0.1:{port}", "--admin", "off",
                "--access-log", "off"]
    return command


@dataclasses.dataclass
class Cache:
    """One row of the score table. `version` is a command and the pattern of the version in what it prints; `setting` is a key that its program may not know."""

    server: servers.Server
    tools: tuple
    version: tuple
    note: str
    setting: str = ""

    @property
    def name(self):
        return self.server.name

    @property
    def title(self):
        return self.server.title

    @property
    def ours(self):
        return self.name.startswith("seawall")

    def seen_version(self):
        command, pattern = self.version
        return machine.first_line(command, pattern)


def cache(name, title, command, tools, version, note, setting=""):
    return Cache(servers.Server(name, title, (), command, "off"), tools, version, note, setting)


SEAWALL_VERSION = ([machine.SEAWALL, "--version"], r"(\d\S*)")
ALL = [
    cache("seawall", "Seawall", seawall(""), (), SEAWALL_VERSION, "`--kind generic`, as it ships"),
    cache("seawall-set-cookie", "Seawall, `store_set_cookie`", seawall("[cache]\nstore_set_cookie = true\n"), (), SEAWALL_VERSION,
          "the same with `[cache] store_set_cookie = true`", setting="store_set_cookie"),
    cache("trafficserver", "Apache Traffic Server", trafficserver, ("traffic_server",), (["traffic_server", "-V"], r"Traffic Server (\d\S*)"),
          "its defaults, one `map` rule"),
    cache("httpd", "Apache httpd mod_cache", httpd, ("apache2",), (["apache2", "-v"], r"Apache/(\S+)"),
          "`mod_cache_disk`, `CacheDefaultExpire 0`, `CacheIgnoreNoLastMod On`, `CacheStoreExpired On`"),
    cache("squid", "Squid", squid, ("squid",), (["squid", "-v"], r"Version (\S+)"), "an accelerator, in memory"),
    cache("varnish", "Varnish", varnish, ("varnishd", "gcc"), (["varnishd", "-V"], r"varnish-(\S+)"),
          "built-in rules, `default_ttl=0`, `default_grace=0`, `default_keep=3600`"),
    cache("nginx", "nginx proxy_cache", nginx, ("nginx",), (["nginx", "-v"], r"nginx/(\S+)"), "`proxy_cache_revalidate on`, `proxy_cache_use_stale` on errors"),
    cache("haproxy", "HAProxy cache", haproxy, ("haproxy",), (["haproxy", "-v"], r"version (\S+)"), "`process-vary on`, `max-age 3600`"),
]
