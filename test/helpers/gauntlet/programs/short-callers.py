"""300 processes a second that make one call each, and 20 whose calls differ in all that they are counted by."""
import os
import time

from attack import connected, fork, listener, over, reap, serve, tried

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
began = time.monotonic()


def answer(data):
    """Each request asks for its status."""
    heads = data.split(b"\r\n\r\n")[:-1]
    return b"".join(b"HTTP/1.1 %s X\r\nContent-Length: 0\r\n\r\n" % head.split(b" ")[1].split(b"/")[1] for head in heads)


def server():
    socket = listener()
    serve(socket, answer)
    return socket.getsockname()[1]


def request(peer, method, status, route):
    head = f"{method} /{status}/{route} HTTP/1.1\r\nHost: a\r\n\r\n"
    peer.sendall(head.encode())
    peer.recv(100)


def caller(number):
    peers = [connected(port) for port in ports]
    count = number
    while not over():
        count += 1
        method, status = METHODS[count % 6], 200 + count // 6 % 300
        tried(request, peers[count % len(peers)], method, status, f"r{count % 17}")
        time.sleep(0.02)


def short(port):
    request(connected(port), "GET", 200, "short")


ports = [server() for _ in range(4)]
callers = [fork(caller, number * 101) for number in range(20)]
count = 0
running = set()
while not over():
    running.add(fork(short, ports[0]))
    count += 1
    while running:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            break
        running.discard(pid)
    time.sleep(max(0, began + count / 300 - time.monotonic()))
reap(running | set(callers))
