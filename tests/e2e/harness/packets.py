"""MQTT packets by hand, for what a client library would never send, and to see replies byte by byte."""

import socket
import struct

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, PINGRESP, DISCONNECT = 2, 3, 4, 5, 6, 7, 13, 14
TELEMETRY = b"v1/devices/me/telemetry"


def length(number: int) -> bytes:
    """A remaining length."""
    out = bytearray()
    while True:
        number, digit = number >> 7, number & 0x7F
        out.append(digit | (0x80 if number else 0))
        if not number:
            return bytes(out)


def text(value) -> bytes:
    """A length-prefixed string; bytes pass as they are."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("!H", len(raw)) + raw


def packet(first: int, body: bytes) -> bytes:
    """Fixed header and body."""
    return bytes([first]) + length(len(body)) + body


def connect(token: str | None, level: int = 4, client_id: str = "", keep_alive: int = 60, properties: bytes = b"") -> bytes:
    """CONNECT with a clean session and, unless None, the token as username."""
    flags = 0x02 | (0x80 if token is not None else 0)
    body = text("MQTT") + bytes([level, flags]) + struct.pack("!H", keep_alive)
    if level == 5:
        body += length(len(properties)) + properties
    body += text(client_id)
    if token is not None:
        body += text(token)
    return packet(0x10, body)


def publish(payload: bytes, packet_id: int = 0, topic: bytes = TELEMETRY, level: int = 4, duplicate: bool = False, qos: int | None = None) -> bytes:
    """PUBLISH; QoS 0 without a packet id, else QoS 1 unless named."""
    qos = (1 if packet_id else 0) if qos is None else qos
    body = text(topic) + (struct.pack("!H", packet_id) if qos else b"")
    if level == 5:
        body += b"\0"
    return packet(0x30 | qos << 1 | (8 if duplicate else 0), body + payload)


def acknowledge(kind: int, packet_id: int) -> bytes:
    """A two-byte acknowledgement without reason code."""
    return packet(kind << 4 | (2 if kind == PUBREL else 0), struct.pack("!H", packet_id))


PING = packet(0xC0, b"")


class Closed(Exception):
    """The peer closed the connection."""


class Wire:
    """One connection to the MQTT door."""

    def __init__(self, port: int, timeout_s: float = 60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)

    def send(self, data: bytes) -> "Wire":
        """Sends bytes as they are."""
        self.socket.sendall(data)
        return self

    def receive(self) -> tuple[int, bytes]:
        """The next packet: its kind and its body."""
        first = self._exactly(1)[0]
        size = shift = 0
        while True:
            digit = self._exactly(1)[0]
            size |= (digit & 0x7F) << shift
            shift += 7
            if not digit & 0x80:
                return first >> 4, self._exactly(size)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self.socket.recv(count - len(data))
            except ConnectionResetError:
                raise Closed from None
            if not more:
                raise Closed
            data += more
        return data

    def rest(self) -> list[tuple[int, bytes]]:
        """All packets until the peer closes."""
        packets = []
        try:
            while True:
                packets.append(self.receive())
        except Closed:
            return packets

    def session(self, token: str, level: int = 4, **more) -> "Wire":
        """Connects and expects to be welcome."""
        self.send(connect(token, level, **more))
        kind, body = self.receive()
        assert (kind, body[1]) == (CONNACK, 0), (kind, body)
        return self

    def close(self):
        """Closes without DISCONNECT."""
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
