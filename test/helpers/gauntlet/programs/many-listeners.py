"""5,000 ports that listen, each asked once."""
import socket
import time

from attack import connected, fork, listener, over, reap, rest, tried


def process():
    servers = []
    for _ in range(2500):
        server = listener(backlog=1)
        servers.append(server)
        peer = connected(server.getsockname()[1])
        other = server.accept()[0]
        peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        other.recv(100)
        other.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        peer.close()
        other.close()
        if over():
            return
    time.sleep(rest())


while not over():
    reap([fork(process), fork(process)])
