"""The agent's own ports: 1,000 half-open connections, slow heads, large bodies, 400 header lines, every page at once."""
import os
import time

from attack import api, connected, exporter, fork, over, reap, tried

PATHS = ["/metrics", "/status", "/status/ebpf", "/status/processes", "/status/discovery", "/config", "/openapi.json", "/ui",
         "/ui/api/overview?follow=1", "/ui/api/traces?follow=1", "/ui/api/map?follow=1", "/ui/api/logs?follow=1",
         "/ui/api/profiles", "/debug/vars", "/debug/pprof/profile?seconds=30", "/debug/pprof/heap", "/admin/reload", "/admin/flush"]


def half_open():
    peers = [tried(connected, port) for port in (api, exporter) for _ in range(500)]
    while not over():
        for peer in peers:
            if peer:
                tried(peer.sendall, b"G")
        time.sleep(0.5)


def hammer(port, method):
    while not over():
        for path in PATHS:
            peer = tried(connected, port)
            if not peer:
                continue
            peer.settimeout(0.5)
            tried(peer.sendall, b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (method, path.encode()))
            tried(peer.recv, 1 << 16)
            peer.close()


def odd():
    bodies = [
        b"POST /admin/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n" + b"b" * 1_000_000,
        b"GET /status HTTP/1.1\r\n" + b"X-Y: z\r\n" * 400 + b"\r\n",
        b"GET /ui/api/traces?" + b"a=b&" * 15_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /" + b"../" * 5000 + b"etc/shadow HTTP/1.1\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 1000,
        b"OPTIONS * HTTP/1.1\r\nHost: \xff\x00\r\n\r\n",
        os.urandom(100_000),
    ]
    while not over():
        for body in bodies:
            for port in (api, exporter):
                peer = tried(connected, port)
                if not peer:
                    continue
                peer.settimeout(0.3)
                tried(peer.sendall, body)  # and never reads what comes
                time.sleep(0.05)
                peer.close()


reap([fork(half_open), fork(odd), fork(hammer, api, b"GET"), fork(hammer, exporter, b"GET"), fork(hammer, api, b"POST")])
