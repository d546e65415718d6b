"""10,000 distinct URLs, hosts, methods, user agents and statuses, each once."""
import os

from attack import connected, listener, over, serve, tried

server = listener()
status = [99]


def answer(data):
    status[0] = status[0] % 999 + 1
    return b"HTTP/1.1 %03d %s\r\nContent-Length: 0\r\n\r\n" % (status[0], os.urandom(8).hex().encode())


serve(server, answer)
peer = connected(server.getsockname()[1])
number = 0
while not over():
    number += 1
    word = os.urandom(6).hex().encode()
    method = b"GET" if number % 3 else word[:7].upper().translate(bytes.maketrans(b"0123456789", b"ABCDEFGHIJ"))
    path = b"/%s/%s/%s?%s=%s" % (word, word[:2] * 100, b"x" * (number % 900), word, word)
    head = b"%s %s HTTP/1.1\r\nHost: %s.example:%d\r\nUser-Agent: %s\r\nX-Forwarded-For: %s\r\n\r\n"
    if tried(peer.sendall, head % (method, path, word, number % 65536, word * 20, word)) is None and tried(peer.recv, 4096):
        continue
    peer.close()
    peer = connected(server.getsockname()[1])
