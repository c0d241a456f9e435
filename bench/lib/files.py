"""The folder of files that is measured: what is in it, what is asked of it, and which servers serve it."""

import dataclasses
import gzip
import os
import random
import sys

import client
import machine
import servers
from servers import Server

TIME = 1_767_225_600
SMALL, MIDDLE, LONG = 8192, 100 * 1024, 10 * 1024 * 1024
PART = 64 * 1024


@dataclasses.dataclass
class Request:
    path: str
    fields: tuple
    expected: bytes


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the tables. `count`: requests of the untimed passes, as many as a server under valgrind answers in a few seconds."""

    name: str
    title: str
    connections: int
    status: int
    count: int

    @property
    def kind(self):
        return self.name


ROWS = [
    Row("8k", "8 KB: 1,000 pages", 64, 200, 2000),
    Row("100k", "100 KB: 100 pictures", 64, 200, 1000),
    Row("10m", "10 MB: 4 films", 16, 200, 40),
    Row("range", "Ranges: 64 KB out of a film of 10 MB, at 500 places", 64, 206, 1000),
    Row("304", "304: the pages, asked with If-None-Match", 64, 304, 2000),
    Row("gzip", "Precompressed: 100 stylesheets of 40 KB with a .gz beside them, asked with Accept-Encoding: gzip", 64, 200, 2000),
]


def write(site):
    """The folder. Same times for all, so that nothing depends on when it was written."""
    made = random.Random(20260101)
    pages = site.folder / "pages"
    for name in ("8k", "100k", "10m", "css"):
        (pages / name).mkdir(parents=True)

    def keep(path, content):
        path.write_bytes(content)
        os.utime(path, (TIME, TIME))

    keep(pages / "index.html", b"<!doctype html><title>Files</title>")
    for number in range(1000):
        text = f"<!doctype html><title>Page {number}</title>\n<p>".encode() + b"quiet garden morning " * 400
        keep(pages / f"8k/{number}.html", text[:SMALL])
    for number in range(100):
        keep(pages / f"100k/{number}.jpg", made.randbytes(MIDDLE))
        lines = "".join(f".bed-{made.randrange(1000)} > .row:nth-child({made.randrange(50)}) {{ margin: {made.randrange(40)}px; color: #{made.randrange(4096):03x} }}\n"
                        for _ in range(650)).encode()
        keep(pages / f"css/{number}.css", lines)
        keep(pages / f"css/{number}.css.gz", gzip.compress(lines, 9, mtime=0))
    for number in range(4):
        keep(pages / f"10m/{number}.mp4", made.randbytes(LONG))


def requests(site, row, port):
    """What is asked in this row, and what the content of each answer must be. The validators are asked of the server on `port`."""
    pages = site.folder / "pages"
    read = lambda name: (pages / name).read_bytes()  # noqa: E731
    if row.name == "8k":
        return [Request(f"/8k/{n}.html", (), read(f"8k/{n}.html")) for n in range(1000)]
    if row.name == "100k":
        return [Request(f"/100k/{n}.jpg", (), read(f"100k/{n}.jpg")) for n in range(100)]
    if row.name == "10m":
        return [Request(f"/10m/{n}.mp4", (), read(f"10m/{n}.mp4")) for n in range(4)]
    if row.name == "gzip":
        return [Request(f"/css/{n}.css", (("Accept-Encoding", "gzip"),), read(f"css/{n}.css.gz")) for n in range(100)]
    if row.name == "range":
        films = [read(f"10m/{n}.mp4") for n in range(4)]
        places = [(n % 4, n * 7919 * 1000 % (LONG - PART)) for n in range(500)]
        return [Request(f"/10m/{film}.mp4", (("Range", f"bytes={at}-{at + PART - 1}"),), films[film][at:at + PART]) for film, at in places]
    found = []
    for n in range(1000):
        tag = client.get(port, f"/8k/{n}.html")[1].get("etag")
        if not tag:
            sys.exit(f"port {port}: no ETag on /8k/{n}.html")
        found.append(Request(f"/8k/{n}.html", (("If-None-Match", tag),), b""))
    return found


def verify(server, port, row, asked):
    """Ends the run with a clear word unless every answer has the right status, fields and bytes, twice over."""
    connection = client.Connection(port)
    for cold in (True, False):
        for request in asked:
            status, fields, content = connection.get(request.path, request.fields)
            wrong = None
            # Who has not seen a file yet may compress it on its way; from then on it is the one that lies beside it.
            if row.name == "gzip" and cold and content != request.expected and gzip.decompress(content) == gzip.decompress(request.expected):
                content = request.expected
            if status != row.status:
                wrong = f"answered {status}, not {row.status}"
            elif content != request.expected:
                wrong = f"answered {len(content)} bytes that are not the {len(request.expected)} of the file"
            elif row.name == "gzip" and (fields.get("content-encoding") != "gzip" or "accept-encoding" not in fields.get("vary", "").lower()):
                wrong = f"not marked as gzip, or without Vary: {fields}"
            elif row.name == "range" and fields.get("content-range") != request.fields[0][1].replace("=", " ") + f"/{LONG}":
                wrong = f"a wrong Content-Range: {fields}"
            if wrong:
                sys.exit(f"{server.title} on port {port}: {request.path} {dict(request.fields)} {wrong}")
    connection.close()


def write_requests(site, server, row, asked):
    """The file that wrk reads them from."""
    path = site.folder / f"requests-{server.name}-{row.name}"
    path.write_text("".join("\t".join([request.path, *(f"{name}: {value}" for name, value in request.fields)]) + "\n" for request in asked))
    return path


def floor_options(site, row):
    if row.name == "304":
        return ["not-modified"]
    if row.name == "10m":
        return [site.folder / "pages/10m/0.mp4", "sendfile"]
    if row.name == "range":
        part = site.folder / "floor-part"
        part.write_bytes(bytes(PART))
        return [part]
    return [site.folder / "pages" / {"8k": "8k/0.html", "100k": "100k/0.jpg", "gzip": "css/0.css.gz"}[row.name]]


def floor(row):
    """What remains when nothing is parsed: the same bytes for every request of this row, those of a long file by sendfile."""
    def command(site, port, folder, single):
        return [machine.compile_c("floor"), port, *floor_options(site, row)]
    return Server("floor", "the floor", (), command, "none", caches=False)


def seawall(site, port, folder, single):
    # As it ships.
    return [machine.SEAWALL, "serve", site.folder / "pages", "--listen", f"127.0.0.1:{port}", "--admin", "off", "--workers", "1",
            "--access-log", folder / "access.log", "--log-format", "combined"]


SERVERS = servers.with_newest_nginx([
    Server("seawall", "Seawall", (), seawall, "to a file"),
    Server("nginx", "nginx", (), servers.nginx("nginx-files.conf"), "to a file, buffered 64 KB"),
    Server("h2o", "h2o", (), servers.h2o("h2o-files.conf"), "off, its default"),
], {"nginx": "nginx-files.conf"})
TOOLS = {"seawall": [], "nginx": ["nginx"], "nginx-new": [], "h2o": ["h2o"]}
