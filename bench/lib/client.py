"""A small HTTP/1.1 client: to verify what a server does, and to send an exact number of requests. Timing is wrk's job."""

import gzip
import re
import socket
import ssl
import sys

from servers import PAGES, PAGE_BYTES, SecurePort

# The certificates of a measurement are made for it, and nobody else is on the loopback address.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TLS.check_hostname = False
TLS.verify_mode = ssl.CERT_NONE


def url(port, path):
    return f"{'https' if isinstance(port, SecurePort) else 'http'}://127.0.0.1:{port}{path}"


class Connection:
    """One keep-alive connection; a request is sent, then its answer is read to its end."""

    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", int(port)), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if isinstance(port, SecurePort):
            self.socket = TLS.wrap_socket(self.socket)
        self.host = f"127.0.0.1:{port}"
        self.buffer = b""

    def send(self, path, fields=()):
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n{lines}\r\n".encode())

    def receive(self):
        """(status, fields with lower-case names, body)"""
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split()[1])
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if status in (204, 304):
            return status, fields, b""
        if "content-length" in fields:
            return status, fields, self._take(int(fields["content-length"]))
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return status, fields, self._chunks()
        raise ValueError(f"an answer without a length: {first}")

    def get(self, path, fields=()):
        self.send(path, fields)
        return self.receive()

    def close(self):
        self.socket.close()

    def _more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def _chunks(self):
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                self._more()
            size, _, self.buffer = self.buffer.partition(b"\r\n")
            chunk = self._take(int(size.split(b";")[0], 16) + 2)[:-2]
            if not chunk:
                return body
            body += chunk


def get(port, path, fields=()):
    connection = Connection(port)
    try:
        return connection.get(path, fields)
    finally:
        connection.close()


def origin_counts(port):
    """(requests, most at the same time, abandoned by their client) as the origin saw them."""
    return tuple(int(word) for word in get(port, "/count")[2].split())


def metric(port, name):
    """The value of one of Seawall's own metrics, one without labels; `port` is its admin's."""
    lines = get(port, "/metrics")[2].decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.startswith(f"{name} "))


def serial(body):
    found = re.search(rb"serial (\d+)", body)
    return int(found[1]) if found else None


def fill(port, numbers=range(PAGES)):
    """Every page once, so that a cache has them all."""
    connection = Connection(port)
    for number in numbers:
        status, _, body = connection.get(f"/page/{number}")
        if status != 200 or len(body) != PAGE_BYTES:
            sys.exit(f"port {port}: /page/{number} answered {status} with {len(body)} bytes")
    connection.close()


def own_bytes(origin_port):
    """(content, fields, content compressed by gzip) of one of the origin's pages, in bytes."""
    _, fields, body = get(origin_port, "/page/777")
    return len(body), sum(len(name) + len(value) + 4 for name, value in fields.items()), len(gzip.compress(body, 6))


def etag_of(port):
    """The validator of a page, with %d where its number stands."""
    found = get(port, "/page/777")[1].get("etag")
    return found.replace("777", "%d") if found and found.startswith('"bench-') else found


def verify(server, port):
    """Ends the run with a clear word unless the server does what its rows claim. Returns the ETag for the 304 row."""
    def insist(holds, what):
        if not holds:
            sys.exit(f"{server.title} on port {port}: {what}")

    if not server.caches:
        if server.name == "floor-304":
            insist(get(port, "/page/1")[0] == 304, "the floor must answer 304")
            return '"bench-%d"'
        status, fields, body = get(port, "/page/1")
        insist(status == 200 and len(body) == PAGE_BYTES, f"/page/1 answered {status}, {len(body)} bytes")
    else:
        fill(port)
        first, again = get(port, "/page/1"), get(port, "/page/1")
        insist(serial(first[2]) == serial(again[2]), "a page is not a hit the second time")
        said = again[1].get("x-cache", "")
        insist("HIT" in said.upper() or "age" in again[1], f"a hit shows neither X-Cache nor Age: {again[1]}")
        one, two = get(port, "/pass/1"), get(port, "/pass/1")
        insist(serial(one[2]) != serial(two[2]), "a page with no-store is answered from the cache")
        insist(get(port, f"/miss/verify-{port}")[0] == 200, "a miss does not answer 200")
    if "304" not in server.kinds:
        return None
    etag = etag_of(port)
    insist(etag, "no ETag on a page")
    insist(get(port, "/page/5", [("If-None-Match", etag.replace("%d", "5"))])[0] == 304, "If-None-Match with the page's own ETag is not answered with 304")
    return etag


def exact(port, kind, etag, count, connections=8, nonce="0"):
    """Exactly `count` requests of a row's kind over some keep-alive connections, all of which ask, then all are read."""
    open_ones = [Connection(port) for _ in range(connections)]
    asked = 0
    while asked < count:
        busy = open_ones[: count - asked]
        for connection in busy:
            page = asked * 617 % PAGES
            path = {"hit": f"/page/{page}", "304": f"/page/{page}", "pass": f"/pass/{page}", "miss": f"/miss/{nonce}-{asked}"}[kind]
            connection.send(path, [("If-None-Match", etag.replace("%d", str(page)))] if kind == "304" else ())
            asked += 1
        for connection in busy:
            status = connection.receive()[0]
            if status != (304 if kind == "304" else 200):
                sys.exit(f"port {port}: {kind} answered {status}")
    for connection in open_ones:
        connection.close()


def exact_requests(port, requests, status, count, connections=8):
    """The same for requests that are given as (path, fields), in turn."""
    open_ones = [Connection(port) for _ in range(connections)]
    asked = 0
    while asked < count:
        busy = open_ones[: count - asked]
        for connection in busy:
            connection.send(*requests[asked % len(requests)])
            asked += 1
        for connection in busy:
            answered = connection.receive()[0]
            if answered != status:
                sys.exit(f"port {port}: a request that should give {status} gave {answered}")
    for connection in open_ones:
        connection.close()
