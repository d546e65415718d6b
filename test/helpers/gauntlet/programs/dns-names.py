"""Questions of DNS with 10,000 names, of which none is answered, or by what is no answer."""
import os
import random
import socket
import time

from attack import fork, over, reap

random.seed(2)


def server(peer):
    while not over():
        try:
            data, source = peer.recvfrom(4096)
            peer.sendto(data[:2] + b"\x81\x80" + random.randbytes(8) + b"\xc0\x0c" * 200 + random.randbytes(300), source)
        except OSError:
            pass


def client(targets):
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    number = 0
    while not over():
        number += 1
        labels = [os.urandom(30).hex().encode() for _ in range(4)] if number % 2 else [b"n%d" % number, b"\x1b[2J\xff", b"example"]
        name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
        question = os.urandom(2) + b"\x01\0\0\1\0\0\0\0\0\0" + name + b"\0\1\0\1"
        for target in targets:
            try:
                peer.sendto(question, target)
            except OSError:
                pass
        if number % 50 == 0:
            time.sleep(0.01)


answering = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answering.settimeout(0.2)
try:
    answering.bind(("127.0.0.77", 53))
except OSError:
    answering.bind(("127.0.0.1", 0))
reap([fork(server, answering), fork(client, [answering.getsockname(), ("127.0.0.53", 53)])])
