"""gRPC whose metadata is giant: 60 KB of it with each call, names without end, a table that is changed all the time."""
import os
import struct

from attack import connected, fork, listener, over, reap, serve, tried


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    if len(value) < 127:
        return bytes([len(value)]) + value
    rest, length = len(value) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest & 127 | 128])
        rest >>= 7
    return length + bytes([rest]) + value


def field(name, value, indexed=True):
    return (b"\x40" if indexed else b"\x00") + text(name) + text(value)


def head(number):
    path = b"/pkg%d.Service%s/Method%d" % (number % 977, os.urandom(20).hex().encode(), number)
    fields = b"\x83\x86" + field(b":path", path) + field(b":authority", os.urandom(100).hex().encode())
    fields += field(b"content-type", b"application/grpc") + field(b"grpc-timeout", b"99999999H")
    return fields + b"".join(field(b"x-%d-%d" % (number, i), os.urandom(450).hex().encode()) for i in range(60))


def in_frames(stream, block, flags):
    parts = [block[i : i + 16_000] for i in range(0, len(block), 16_000)]
    out = frame(1, flags if len(parts) > 1 else flags | 4, stream, parts[0])
    for i, part in enumerate(parts[1:]):
        out += frame(9, 4 if i == len(parts) - 2 else 0, stream, part)
    return out


def client(port):
    while not over():
        peer = tried(connected, port)
        if not peer:
            continue
        peer.settimeout(0.2)
        tried(peer.sendall, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
        for number in range(200):
            tried(peer.sendall, in_frames(2 * number + 1, head(number), 0) + frame(0, 1, 2 * number + 1, b"\0\0\0\0\x01x"))
            tried(peer.recv, 1 << 16)
            if over():
                break
        peer.close()


number = [0]


def answer(data):
    out = frame(4, 0, 0)
    for _ in range(3):
        number[0] = number[0] % 400 + 1
        trailers = field(b"grpc-status", b"13") + field(b"grpc-message", b"%20" * 3000)
        out += in_frames(2 * number[0] - 1, b"\x88" + field(b"content-type", b"application/grpc"), 0)
        out += in_frames(2 * number[0] - 1, trailers + field(b"x", os.urandom(20_000).hex().encode()), 1)
    return out


listening = listener()
serve(listening, answer)
reap([fork(client, listening.getsockname()[1]) for _ in range(2)])
