"""HTTP/1 as it may not be: header bombs, wrong chunks, giant heads, slow heads, smuggling, WebSocket garbage, contexts."""
import os
import random
import time

from attack import connected, fork, listener, over, reap, serve, tried

random.seed(7)


def junk(size):
    return random.randbytes(size)


def heads():
    line = b"GET /%s HTTP/1.1\r\nHost: a\r\n" % junk(3).hex().encode()
    yield line + b"".join(b"X-%d: %s\r\n" % (i, b"v" * 50) for i in range(5000)) + b"\r\n"
    yield line + b"A: " + b"a" * 200_000 + b"\r\n\r\n"
    yield b"GET /" + b"p" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    yield line + b"Content-Length: 99999999999999999999999\r\n\r\n" + junk(500)
    yield line + b"Content-Length: -1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n" + junk(300)
    yield b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1;" + b"e" * 3000 + b"\r\nx\r\n" * 50 + b"0\r\n" + b"T: t\r\n" * 500 + b"\r\n"
    yield line + b"traceparent: 00-" + b"f" * 32 + b"-" + b"0" * 16 + b"-ff\r\ntracestate: " + b"a=b," * 5000 + b"\r\nbaggage: " + b"%00=%ff;" * 2000 + b"\r\n\r\n"
    yield line + b"traceparent: " + junk(55) + b"\r\ntracestate: \xff\x00=\x1b\r\n\r\n"
    yield line + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n" + b"\x82\xff" + b"\xff" * 8 + junk(2000)
    yield b"CONNECT [::::::%s]:99999 HTTP/1.1\r\nHost: \x00\x1b\r\n\r\n" % (b"f" * 500)
    yield b"GET http://u:p@[%s/\xff\xfe?%%%%%%=#\x00 HTTP/9.9\r\n\r\n" % (b":" * 300)
    yield b"GET / HTTP/1.1\n" + b" folded\n" * 3000 + b"\n"
    yield b"GET /" + b"/..%2f%00" * 90 + b" HTTP/1.1\r\nX-Forwarded-For: " + b"1.1.1.1, " * 500 + b"\r\n\r\n"


def answer(data):
    kind = random.randrange(7)
    if kind == 0:
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFFFF\r\n" + junk(200)
    if kind == 1:
        return b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n" + b"\x82\x7f" + b"\x7f" * 8 + junk(1000)
    if kind == 2:
        return b"HTTP/1.1 100 Continue\r\n\r\n" * 200
    if kind == 3:
        return b"HTTP/1.1 200 " + b"r" * 50_000 + b"\r\n\r\n"
    if kind == 4:
        return junk(2000)
    if kind == 5:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n" + junk(100)
    return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" * 50


def client(port):
    while not over():
        for head in heads():
            peer = connected(port)
            peer.settimeout(0.1)
            tried(peer.sendall, head)
            tried(peer.recv, 1 << 16)
            tried(peer.sendall, head[: len(head) // 2])
            peer.close()


def slow(port):
    """A byte each while, over many connections."""
    peers = [connected(port) for _ in range(500)]
    text = b"GET /slow HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100
    for byte in text:
        for peer in peers:
            tried(peer.sendall, bytes([byte]))
        if over():
            return
        time.sleep(0.05)


listening = listener()
port = listening.getsockname()[1]
serve(listening, answer)
reap([fork(client, port), fork(slow, port)])
