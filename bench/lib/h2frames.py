"""HTTP/2 frames as an attacker writes them (RFC 9113 §4, §6): nothing here keeps to the protocol unless it is asked to."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
INITIAL_WINDOW_SIZE = 4
ERRORS = ("NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL",
          "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED")


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(*pairs):
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in pairs))


def number(value, prefix, pattern=0):
    """RFC 7541 §5.1."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes([pattern | value])
    out, value = [pattern | most], value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes([*out, value])


def text(value):
    return number(len(value), 7) + value


def literal(name, value, index=False):
    """A field spelled out; `index`: to become an entry of the table, too (RFC 7541 §6.2)."""
    return (b"\x40" if index else b"\x00") + text(name) + text(value)


def request(path, host=b"bench.example", method=b"GET"):
    """The block of a request: method, scheme, path, authority."""
    return (b"\x82" if method == b"GET" else b"\x02" + text(method)) + b"\x86\x04" + text(path) + b"\x01" + text(host)


class Reader:
    """Looks through what a server sends, however it is cut, for its goodbye, and counts frames by kind."""

    def __init__(self):
        self.head, self.body, self.skip, self.kept = b"", b"", 0, None
        self.kinds, self.goodbye = {}, None

    def take(self, data):
        at = 0
        while at < len(data):
            if self.skip:
                step = min(self.skip, len(data) - at)
                if self.kept is not None:
                    self.kept += data[at:at + step]
                self.skip -= step
                at += step
            else:
                step = min(9 - len(self.head), len(data) - at)
                self.head += data[at:at + step]
                at += step
                if len(self.head) < 9:
                    return
                length, kind = int.from_bytes(self.head[:3], "big"), self.head[3]
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
                self.skip, self.kept, self.head = length, b"" if kind == GOAWAY else None, b""
            if self.kept is not None and not self.skip:
                code = int.from_bytes(self.kept[4:8], "big")
                self.goodbye, self.kept = ERRORS[code] if code < len(ERRORS) else hex(code), None
