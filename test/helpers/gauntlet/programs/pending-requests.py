"""16,384 requests of HTTP/1 under way: over 4,096 connections, and four on each; nobody answers."""
import time

from attack import connected, fork, listener, over, reap, rest


def server(listening):
    peers = []
    listening.settimeout(0.2)
    while not over():
        try:
            peers.append(listening.accept()[0])
        except OSError:
            pass


def client(port, number):
    peers = []
    for i in range(1024):
        peers.append(connected(port))
        for j in range(4):
            peers[-1].sendall(b"GET /%d/%d/%d/%s HTTP/1.1\r\nHost: %s\r\n\r\n" % (number, i, j, b"q" * 700, b"h" * 200))
        if over():
            break
    time.sleep(rest() / 2)  # then all connections close at once


listening = [listener() for _ in range(4)]
for each in listening:
    fork(server, each)
reap([fork(client, each.getsockname()[1], number) for number, each in enumerate(listening)])
