"""20,000 connections on which one request was made, and 4,000 more that come and go."""
import time

from attack import connected, fork, http_server, listener, over, reap, rest, serve, OK


def client(port):
    peers = []
    for i in range(5000):
        if over():
            return
        peers.append(connected(port))
        peers[-1].sendall(b"GET /idle HTTP/1.1\r\nHost: a\r\n\r\n")
        peers[-1].recv(100)
    time.sleep(rest())


def coming(port):
    while not over():
        peer = connected(port)
        peer.close()


servers = [listener(host="127.0.0.1") for _ in range(4)]
for each in servers:
    serve(each, lambda data: OK)
ports = [each.getsockname()[1] for each in servers]
reap([fork(client, port) for port in ports] + [fork(coming, ports[0])])
