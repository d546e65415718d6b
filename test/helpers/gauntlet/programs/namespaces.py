"""Network and mount namespaces of a user's own, with calls inside, that come and go; sockets without a port."""
import ctypes
import os
import socket
import time

from attack import connected, folder, fork, http_server, over, reap

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWPID = 0x10000000, 0x40000000, 0x00020000, 0x20000000
libc = ctypes.CDLL(None)


def inside(number):
    libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID)
    try:
        peer = connected(http_server())
        peer.sendall(b"GET /inside/%d HTTP/1.1\r\nHost: a\r\n\r\n" % number)
        peer.recv(100)
    except OSError:
        pass
    left, right = socket.socketpair()
    for i in range(500):
        left.send(b"GET /unix/%d HTTP/1.1\r\nHost: a\r\n\r\n" % i)
        right.recv(1000)
        right.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        left.recv(1000)
    time.sleep(1)


number = 0
while not over():
    children = []
    for _ in range(50):
        number += 1
        children.append(fork(inside, number))
    for pid in children:
        os.waitpid(pid, 0)
