"""The agent's ports once more: bodies whose length lies, chunks without an end, pipelines nobody reads, 3,000 idle peers."""
import time

from attack import api, connected, exporter, fork, over, reap, rest, tried

LIES = [
    b"POST /admin/flush HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n",
    b"POST /admin/log-level HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000,
    b"POST /ui/api/try HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551615\r\n\r\n" + b"{" * 100_000,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n" * 300,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
    b"GET /ui HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"k=v; " * 3000 + b"\r\n\r\n",
    b"GET /ui#key=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"\xff" * 8000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9) * 1000,
    b"\x16\x03\x01\x02\x00\x01" + bytes(500),
]


def lie(port):
    while not over():
        for text in LIES:
            peer = tried(connected, port)
            if peer:
                peer.settimeout(0.2)
                tried(peer.sendall, text)
                time.sleep(0.02)
                peer.close()


def idle(port):
    while not over():
        peers = [tried(connected, port) for _ in range(1500)]
        for peer in peers:
            if peer:
                tried(peer.sendall, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        time.sleep(min(3, rest()))
        for peer in peers:
            if peer:
                peer.close()


reap([fork(work, port) for work in (lie, idle) for port in (api, exporter)])
