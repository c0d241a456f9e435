"""What is measured over TLS: the rows, their certificates, and the clients. All clients are OpenSSL's and offer the same, so that what a server prefers makes no difference."""

import dataclasses
import os
import pathlib
import re
import subprocess
import sys

import client
import load
import machine
from servers import PAGES

# What today's browsers come to with most servers, post-quantum shares aside: Debian's OpenSSL has none.
SUITE, GROUP = "TLS_AES_128_GCM_SHA256", "X25519"
NAME = "bench.example"
KEYS = {"P-256": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "RSA-2048": ["-newkey", "rsa:2048"]}


@dataclasses.dataclass(frozen=True)
class Pair:
    """A certificate with the one that it is signed by, as an authority sends them, and its key."""

    certificate: pathlib.Path
    key: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the tables. `kind`: h1, h2, full or resumed; `count`: requests or handshakes of the untimed passes; `lead`: seconds more than the others get,
    as many connections have to be made before the first request of all is answered."""

    name: str
    title: str
    kind: str
    key: str
    connections: int
    streams: int = 1
    count: int = 2000
    lead: int = 0

    @property
    def shakes(self):
        return self.kind in ("full", "resumed")


ROWS = [
    Row("h1-64", "HTTP/1.1 hits: 1,000 different pages of 8 KB, 64 connections", "h1", "P-256", 64),
    Row("h1-500", "HTTP/1.1 hits: the same, 500 connections", "h1", "P-256", 500, lead=3),
    Row("h2", "HTTP/2 hits: the same pages, 32 connections of 10 streams", "h2", "P-256", 32, 10),
    Row("full-p256", "Full handshakes with an ECDSA P-256 certificate, 32 at once", "full", "P-256", 32, count=300),
    Row("full-rsa", "Full handshakes with an RSA-2048 certificate, 32 at once", "full", "RSA-2048", 32, count=100),
    Row("resumed", "Resumed handshakes (tickets; the key exchange is new each time), 32 at once", "resumed", "P-256", 32, count=300),
]


def openssl(*words, **options):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True, **options).stdout


def make_pair(folder, key):
    """A certificate for NAME with a key of this kind, and an authority with the same behind it."""
    folder = folder / f"pair-{key}"
    folder.mkdir()
    made = ["-nodes", *KEYS[key], "-sha256"]
    openssl("req", "-x509", *made, "-subj", "/O=Seawall/CN=An authority of a benchmark", "-keyout", folder / "ca.key", "-out", folder / "ca.pem", "-days", 30)
    openssl("req", "-new", *made, "-subj", f"/CN={NAME}", "-keyout", folder / "key.pem", "-out", folder / "request.pem")
    (folder / "names").write_text(f"subjectAltName=DNS:{NAME},IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    leaf = openssl("x509", "-req", "-in", folder / "request.pem", "-CA", folder / "ca.pem", "-CAkey", folder / "ca.key", "-CAcreateserial", "-days", 30,
                   "-sha256", "-extfile", folder / "names")
    (folder / "chain.pem").write_text(leaf + (folder / "ca.pem").read_text())
    return Pair(folder / "chain.pem", folder / "key.pem")


def offers(folder):
    """The environment in which OpenSSL's clients offer TLS 1.3 with SUITE and GROUP alone."""
    file = folder / "openssl.cnf"
    file.write_text("openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = default\n"
                    f"[default]\nMinProtocol = TLSv1.3\nCiphersuites = {SUITE}\nGroups = {GROUP}\n")
    return dict(os.environ, OPENSSL_CONF=str(file))


def negotiated(port, offered):
    """What a server comes to with such a client, in words; ends the run when it is not what all are compared by."""
    done = subprocess.run(["openssl", "s_client", "-brief", "-connect", f"127.0.0.1:{port}", "-servername", NAME], env=offered, input="",
                          capture_output=True, text=True)
    said = dict(re.findall(r"^([A-Za-z ]+): (.*)$", done.stdout + done.stderr, re.M))
    found = [said.get(name, "?") for name in ("Protocol version", "Ciphersuite", "Server Temp Key", "Signature type")]
    if found[:2] != ["TLSv1.3", SUITE] or not found[2].startswith(GROUP):
        sys.exit(f"port {port} negotiated {found}, not TLS 1.3 with {SUITE} and {GROUP}\n{done.stdout}{done.stderr}")
    return ", ".join(found)


def told_by(numbers, **errors):
    """What load.sample() wants to be told, from (requests, duration_us, bytes, p50, p99, longest)."""
    names = ("requests", "duration_us", "bytes", "p50_us", "p99_us", "max_us")
    return {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0, **errors, **dict(zip(names, numbers, strict=True))}


class Clients:
    """The load on one core: wrk, h2load and our own handshakes."""

    def __init__(self, folder, core):
        self.folder, self.core, self.offered = folder, core, offers(folder)
        self.log = folder / "h2load.log"

    def _run(self, command):
        done = subprocess.run(["taskset", "-c", str(self.core), *map(str, command)], env=self.offered, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def wrk(self, row, port, seconds):
        return load.wrk(port, "/page/0", row.connections, seconds, self.core, ("hit",), environment=self.offered)

    def h2load(self, row, port, seconds=None, count=None, connections=None):
        """The pages in turn for some seconds, or an exact number of them; HTTP/1.1 without pipelining in a row of that kind."""
        asked = self.folder / f"pages-{port}"
        asked.write_text("".join(client.url(port, f"/page/{number * 617 % PAGES}") + "\n" for number in range(PAGES)))
        self.log.unlink(missing_ok=True)
        said = self._run(["h2load", "-c", connections or row.connections, "-m", row.streams, "-i", asked, "--tls13-ciphers", SUITE, "--groups", GROUP,
                          *(["--h1"] if row.kind == "h1" else []),
                          *(["-D", seconds, "--log-file", self.log] if seconds else ["-n", count])])
        protocol = "http/1.1" if row.kind == "h1" else "h2"
        if f"Application protocol: {protocol}" not in said or f"Cipher: {SUITE}" not in said:
            sys.exit(f"h2load did not get {protocol} with {SUITE} from port {port}:\n{said}")
        total, failed, errored, timeout = (int(re.search(rf"(\d+) {word}", said)[1]) for word in ("done", "failed", "errored", "timeout"))
        statuses = [int(number) for number in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said).groups()]
        bytes_ = int(re.search(r"traffic: \S+ \((\d+)\) total", said)[1])
        times = sorted(int(line.split("\t")[2]) for line in self.log.read_text().splitlines()) if seconds else []
        at = [times[len(times) * part // 100] if times else 0 for part in (50, 99)] + [times[-1] if times else 0]
        duration = float(seconds or 1) * 1e6
        return told_by((total, duration, bytes_, *at), read=failed + errored - sum(statuses[2:]), status=sum(statuses[2:]), timeout=timeout)

    def shake(self, row, port, *limit, connections=None):
        """`limit`: seconds or count, and how many."""
        program = machine.compile_c("handshakes", "-lssl", "-lcrypto")
        done, duration, failed, resumed, *times = map(int, self._run([program, port, row.kind, connections or row.connections, *limit]).split())
        if row.kind == "resumed" and resumed != done or row.kind == "full" and resumed:
            sys.exit(f"port {port}: of {done} handshakes {resumed} were resumed")
        return told_by((done, duration, 0, *times), connect=failed)

    def timed(self, row, port, seconds):
        if row.shakes:
            return self.shake(row, port, "seconds", seconds)
        return self.wrk(row, port, seconds) if row.kind == "h1" else self.h2load(row, port, seconds)

    def exact(self, row, port, count, connections):
        if row.shakes:
            self.shake(row, port, "count", count, connections=connections)
            return
        told = self.h2load(row, port, count=count, connections=connections)
        if told["requests"] != count or told["read"] or told["status"]:
            sys.exit(f"port {port}: {row.name}: of {count} requests not all were answered well: {told}")
