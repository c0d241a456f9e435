"""What aioquic sees of a server at an address: `clients_aioquic.py ADDRESS NAME ROOTS`. Prints a line for each thing; ends with an exception if one is not so."""

import asyncio
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

PAGE_BYTES, LARGE_BYTES, FORM_BYTES = 8192, 3 << 20, 300_000


class Client(QuicConnectionProtocol):
    """Requests over one connection, several at once."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.http = H3Connection(self._quic)
        self.waiting = {}

    def quic_event_received(self, event):
        for part in self.http.handle_event(event):
            waiting, answer = self.waiting[part.stream_id]
            if isinstance(part, HeadersReceived):
                answer["head"] = dict(part.headers)
            elif isinstance(part, DataReceived):
                answer["content"] += part.data
            if getattr(part, "stream_ended", False) and not waiting.done():
                waiting.set_result(answer)

    async def ask(self, method, authority, path, content=b""):
        stream = self._quic.get_next_available_stream_id()
        waiting = self._loop.create_future()
        self.waiting[stream] = (waiting, {"head": {}, "content": b""})
        fields = [(b":method", method), (b":scheme", b"https"), (b":authority", authority), (b":path", path)]
        self.http.send_headers(stream, fields, end_stream=not content)
        if content:
            self.http.send_data(stream, content, end_stream=True)
        self.transmit()
        return await asyncio.wait_for(waiting, 30)


async def main(address, name, roots):
    host, port = address.split(":")
    tickets, authority = [], f"{name}:{port}".encode()

    def configuration(ticket=None):
        made = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name=name, session_ticket=ticket)
        made.load_verify_locations(cafile=roots)
        return made

    async with connect(host, int(port), configuration=configuration(), create_protocol=Client, session_ticket_handler=tickets.append) as client:
        answers = await asyncio.gather(*(client.ask(b"GET", authority, b"/page/%d" % page) for page in range(100)))
        assert all(answer["head"][b":status"] == b"200" and len(answer["content"]) == PAGE_BYTES for answer in answers)
        print("100 pages at once")
        answer = await client.ask(b"GET", authority, b"/large")
        assert len(answer["content"]) == LARGE_BYTES
        print(f"{LARGE_BYTES >> 20} MiB")
        answer = await client.ask(b"POST", authority, b"/form", b"x" * FORM_BYTES)
        assert answer["head"][b":status"] == b"200", answer
        print("a form")
    async with connect(host, int(port), configuration=configuration(tickets[0]), create_protocol=Client) as client:
        await client.ask(b"GET", authority, b"/page/1")
        assert client._quic.tls.session_resumed and tickets[0].max_early_data_size is None
        print("resumed, without early data")


asyncio.run(main(*sys.argv[1:]))
