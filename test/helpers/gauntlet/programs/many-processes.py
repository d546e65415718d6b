"""1,000 processes at a time, each its own service that makes a call; when they end others come."""
import os
import time

from attack import connected, fork, http_server, over, reap, set_comm

port = http_server()


def process(number):
    set_comm(b"worker-%d" % number)
    peer = connected(port)
    peer.sendall(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % number)
    peer.recv(100)
    time.sleep(3)


number = 0
while not over():
    children = []
    for _ in range(1000):
        number += 1
        children.append(fork(process, number))
        if over():
            break
    for pid in children:
        os.waitpid(pid, 0)
