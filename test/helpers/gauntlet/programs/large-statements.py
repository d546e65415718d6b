"""PostgreSQL with statements of 1 MB, each another one, and ones that nobody answers; Redis with 100,000 under way."""
import os
import struct

from attack import connected, fork, listener, over, reap, serve, tried


def message(kind, body):
    return kind + struct.pack(">I", len(body) + 4) + body


READY = message(b"Z", b"I")


def answer(data):
    if data.startswith(b"\0\0"):
        return message(b"R", struct.pack(">I", 0)) + READY
    return message(b"C", b"SELECT 1\0") + READY


def postgres(port, answered):
    while not over():
        peer = connected(port)
        peer.settimeout(0.2)
        body = struct.pack(">I", 196608) + b"user\0u\0database\0" + os.urandom(20).hex().encode() + b"\0\0"
        tried(peer.sendall, struct.pack(">I", len(body) + 4) + body)
        tried(peer.recv, 4096)
        for _ in range(20):
            word = os.urandom(8).hex().encode()
            text = b"select '" + word + b"' from t" + word + b" where a in (" + b"'x',1," * 170_000 + b"0)\0"
            tried(peer.sendall, message(b"Q", text))
            if answered:
                tried(peer.recv, 4096)
            if over():
                return
        for i in range(3000):
            tried(peer.sendall, message(b"P", b"s%d\0select %d, '" % (i, i) + word * 50 + b"'\0\0\0"))
        peer.close()


def redis(port):
    while not over():
        peer = connected(port)
        for i in range(2000):
            command = b"".join(b"*2\r\n$3\r\nGET\r\n$304\r\n" + b"k" * 300 + b"%04d\r\n" % j for j in range(50))
            tried(peer.sendall, command)
            if over():
                break
        peer.close()


answering, silent = listener(), listener()
serve(answering, answer)
serve(silent, lambda data: answer(data) if data.startswith(b"\0\0") else None)
reap([fork(postgres, answering.getsockname()[1], True), fork(postgres, silent.getsockname()[1], False), fork(redis, silent.getsockname()[1])])
