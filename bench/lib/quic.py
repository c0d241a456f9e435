"""The first datagram of a QUIC client (RFC 9000 §17.2.2, RFC 9001 §5), with nothing but the standard library, which has no AES: a slow one of some milliseconds is here."""

import hashlib
import hmac
import os
import ssl
import struct

DATAGRAM = 1200
SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")


def _sbox():
    """FIPS 197 §5.1.1, made from inverses instead of written down."""
    box, p, q = [0] * 256, 1, 1
    while True:
        p ^= (p << 1) ^ (0x11B if p & 0x80 else 0)
        p &= 0xFF
        for shift in (1, 2, 4):
            q ^= q << shift
        q &= 0xFF
        q ^= 0x09 if q & 0x80 else 0
        turned = q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4)
        box[p] = (turned & 0xFF) ^ 0x63
        if p == 1:
            box[0] = 0x63
            return box


SBOX = _sbox()


def _double(byte):
    return (byte << 1 ^ (0x1B if byte & 0x80 else 0)) & 0xFF


def _round_keys(key):
    words, constant = [list(key[at:at + 4]) for at in range(0, 16, 4)], 1
    while len(words) < 44:
        word = list(words[-1])
        if len(words) % 4 == 0:
            word = [SBOX[byte] for byte in word[1:] + word[:1]]
            word[0] ^= constant
            constant = _double(constant)
        words.append([a ^ b for a, b in zip(words[-4], word)])
    return [sum(words[at:at + 4], []) for at in range(0, 44, 4)]


def aes(keys, block):
    """One block, with AES-128."""
    state = [a ^ b for a, b in zip(block, keys[0])]
    for number, key in enumerate(keys[1:], 1):
        state = [SBOX[state[(at + at % 4 * 4) % 16]] for at in range(16)]
        if number < 10:
            mixed = []
            for at in range(0, 16, 4):
                column = state[at:at + 4]
                whole = column[0] ^ column[1] ^ column[2] ^ column[3]
                mixed += [byte ^ whole ^ _double(byte ^ column[(row + 1) % 4]) for row, byte in enumerate(column)]
            state = mixed
        state = [a ^ b for a, b in zip(state, key)]
    return bytes(state)


def _times(x, y):
    """GCM's multiplication (NIST SP 800-38D §6.3)."""
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return product


def seal(key, nonce, text, beside):
    """AES-128-GCM: the text, encrypted, and its tag."""
    keys = _round_keys(key)
    coded = b""
    for at in range(0, len(text), 16):
        stream = aes(keys, nonce + struct.pack(">I", at // 16 + 2))
        coded += bytes(a ^ b for a, b in zip(text[at:at + 16], stream))
    power, tag = int.from_bytes(aes(keys, bytes(16)), "big"), 0
    padded = b"".join(part + bytes(-len(part) % 16) for part in (beside, coded)) + struct.pack(">QQ", len(beside) * 8, len(coded) * 8)
    for at in range(0, len(padded), 16):
        tag = _times(tag ^ int.from_bytes(padded[at:at + 16], "big"), power)
    mask = aes(keys, nonce + struct.pack(">I", 1))
    return coded + bytes(a ^ b for a, b in zip(tag.to_bytes(16, "big"), mask))


def _expand(secret, label, length):
    """HKDF-Expand-Label (RFC 8446 §7.1), for one block."""
    label = b"tls13 " + label
    said = struct.pack(">HB", length, len(label)) + label + b"\0"
    return hmac.new(secret, said + b"\x01", hashlib.sha256).digest()[:length]


def _varint(value):
    return bytes([value]) if value < 64 else struct.pack(">H", value | 0x4000)


def client_hello(source):
    """As TLS 1.3 has it, with what QUIC wants: no session id, its parameters (RFC 9001 §8)."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h3"])
    outgoing = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="bench.example").do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()[5 + 4:]
    session = hello[34]
    rest = hello[35 + session:]
    suites = 2 + struct.unpack(">H", rest[:2])[0]
    compression = 1 + rest[suites]
    extensions = rest[suites + compression + 2:]
    parameters = b"\x0f" + bytes([len(source)]) + source
    extensions += struct.pack(">HH", 0x39, len(parameters)) + parameters
    body = hello[:34] + b"\0" + rest[:suites + compression] + struct.pack(">H", len(extensions)) + extensions
    return b"\x01" + struct.pack(">I", len(body))[1:] + body


def initial(hello=None, size=DATAGRAM, version=1):
    """The first datagram of a connection of its own, `size` bytes long."""
    destination, source = os.urandom(8), os.urandom(8)
    secret = _expand(hmac.new(SALT, destination, hashlib.sha256).digest(), b"client in", 32)
    key, iv, mask_key = _expand(secret, b"quic key", 16), _expand(secret, b"quic iv", 12), _expand(secret, b"quic hp", 16)
    hello = client_hello(source) if hello is None else hello
    head = b"\xc0" + struct.pack(">I", version) + bytes([8]) + destination + bytes([8]) + source + b"\0"
    # Behind the head: its length in two bytes, a packet number of one, the tag.
    payload = b"\x06\0" + _varint(len(hello)) + hello
    payload += bytes(size - len(head) - 2 - 1 - 16 - len(payload))
    head += struct.pack(">H", 0x4000 | 1 + len(payload) + 16) + b"\0"
    sealed = seal(key, iv, payload, head)
    # The packet number is one byte, so the sample begins three bytes into what follows it (RFC 9001 §5.4.2).
    mask = aes(_round_keys(mask_key), sealed[3:19])
    return bytes([head[0] ^ mask[0] & 0x0F]) + head[1:-1] + bytes([head[-1] ^ mask[1]]) + sealed
