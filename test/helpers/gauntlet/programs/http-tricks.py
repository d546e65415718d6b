"""HTTP as it may be: 1xx floods, pipelines of 1,000, trailers, upgrades to WebSocket, lengths that lie, bodies of no end."""
import os

from attack import connected, fork, listener, over, reap, serve, tried

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
FRAME = b"\x81\x05hello"


def answer(data):
    if b"/early" in data:
        return b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 2000 + OK
    if b"/trailers" in data:
        return b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"1\r\nx\r\n" * 500 + b"0\r\n" + b"X: y\r\n" * 2000 + b"\r\n"
    if b"/socket" in data:
        return b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + FRAME * 3000
    if b"/short" in data:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx" + OK * 10
    if b"/long" in data:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + b"HTTP/1.1 500 No\r\n\r\n" * 500
    if b"/empty" in data:
        return b"HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\n" + OK * 3
    return OK * max(1, data.count(b"\r\n\r\n"))


def client(port):
    get = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"
    texts = [get % b"early", get % b"trailers", get % b"short" * 3, get % b"long" * 3, get % b"empty" * 3, get % b"p" * 1000]
    texts.append(b"GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + b"\x82\x85mask" * 2000)
    texts.append(b"HEAD /long HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
    texts.append(b"POST /trailers HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n" + CHUNKED + b"1\r\nx\r\n" * 2000)
    texts.append(b"POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345" + get % b"smuggled")
    while not over():
        for text in texts:
            peer = tried(connected, port)
            if not peer:
                continue
            peer.settimeout(0.05)
            for piece in (text, text[: len(text) // 3], os.urandom(40)):
                tried(peer.sendall, piece)
                tried(peer.recv, 1 << 18)
            peer.close()


listening = listener()
serve(listening, answer)
reap([fork(client, listening.getsockname()[1]) for _ in range(3)])
