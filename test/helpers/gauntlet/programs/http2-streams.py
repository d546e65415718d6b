"""4 connections of HTTP/2 with 4,000 streams each under way, through a server that never answers and then closes."""
import struct
import time

from attack import connected, fork, listener, over, reap, tried

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([127]) + varint(len(value) - 127) + value


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def server(listening):
    peers = []
    listening.settimeout(0.2)
    while not over():
        peer = tried(listening.accept)
        if peer:
            peer[0].sendall(frame(4, 0, 0))
            peer[0].settimeout(0.01)
            peers.append((time.monotonic(), peer[0]))
        for began, each in peers[:]:
            tried(each.recv, 1 << 20)
            if time.monotonic() - began > 2:
                each.close()
                peers.remove((began, each))


def client(port, number):
    while not over():
        peer = connected(port)
        peer.sendall(PREFACE + frame(4, 0, 0))
        for stream in range(4000):
            path = f"/{number}/{stream}/".encode() + b"p" * 800
            head = b"\x83\x86" + literal(b":path", path) + literal(b":authority", b"h" * 150)
            tried(peer.sendall, frame(1, 4, 2 * stream + 1, head))
        time.sleep(2)
        peer.close()


listening = listener()
fork(server, listening)
reap([fork(client, listening.getsockname()[1], number) for number in range(4)])
