"""Bursts of 10,000 requests as fast as they go, over 20 connections, each behind a second of quiet."""
import time

from attack import connected, http_server, over, tried

port = http_server()
head = b"GET /items/%d HTTP/1.1\r\nHost: shop\r\nUser-Agent: burst\r\n\r\n"
peers = [connected(port) for _ in range(20)]
while not over():
    for turn in range(50):
        for number, peer in enumerate(peers):
            tried(peer.sendall, b"".join(head % (turn * 10 + i) for i in range(10)))
        for peer in peers:
            tried(peer.recv, 1 << 16)
    time.sleep(1)
