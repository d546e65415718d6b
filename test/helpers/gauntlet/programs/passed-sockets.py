"""Connections that wander: passed on by SCM_RIGHTS between processes that end, shared by ten, answered by whoever comes."""
import array
import os
import socket

from attack import fork, listener, over, reap, tried

HEAD = b"GET /wanders/%d HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def give(channel, descriptors):
    channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])


def take(channel):
    _, parts, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(400))
    descriptors = array.array("i")
    for _, _, data in parts:
        descriptors.frombytes(data[: len(data) - len(data) % 4])
    return [socket.socket(fileno=each) for each in descriptors]


def station(before, after, number):
    """Each says a part of a request or a response, and passes the connections on."""
    for turn in range(50):
        peers = take(before)
        for i, peer in enumerate(peers):
            peer.setblocking(False)
            text = HEAD % number if i % 2 else OK
            tried(peer.sendall, text[: len(text) // 2] if turn % 2 else text[len(text) // 2 :])
            tried(peer.recv, 1000)
        give(after, [peer.fileno() for peer in peers])
        for peer in peers:
            peer.close()


def ring(server):
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(6)]
    address = server.getsockname()
    ends = []
    for _ in range(20):
        ends.append(socket.create_connection(address, timeout=2))
        ends.append(server.accept()[0])
    children = [fork(station, pairs[i][1], pairs[(i + 1) % 6][0], i) for i in range(6)]
    give(pairs[0][0], [each.fileno() for each in ends])
    for each in ends:
        each.close()
    for pid in children[:3]:
        os.waitpid(pid, 0)
    for pid in children[3:]:
        tried(os.kill, pid, 9)
        os.waitpid(pid, 0)


def shared(server):
    """Ten processes that write requests to the same connection at once."""
    client = socket.create_connection(server.getsockname(), timeout=2)
    other = server.accept()[0]

    def shout(number):
        for i in range(200):
            tried(client.sendall, HEAD % (number * 1000 + i))
            other.setblocking(False)
            if tried(other.recv, 10_000):
                tried(other.sendall, OK)

    for pid in [fork(shout, number) for number in range(10)]:
        os.waitpid(pid, 0)


def loop(work):
    server = listener()
    while not over():
        pid = fork(work, server)
        os.waitpid(pid, 0)


reap([fork(loop, ring), fork(loop, shared)])
