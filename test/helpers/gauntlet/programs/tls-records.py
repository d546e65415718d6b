"""TLS in records of a byte, handshakes that are broken off, sessions by hundreds, over the system's OpenSSL."""
import os
import ssl
import time

from attack import connected, fork, listener, over, reap, tried


def context(side):
    made = ssl.SSLContext(side)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    # Without a certificate: what is attacked looks at the bytes alone.
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers("aNULL:@SECLEVEL=0")
    return made


def server(listening):
    answering = context(ssl.PROTOCOL_TLS_SERVER)
    while not over():
        try:
            with answering.wrap_socket(listening.accept()[0], server_side=True) as peer:
                peer.settimeout(0.3)
                while data := peer.recv(4096):
                    for i in range(0, len(data), 7):
                        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"[:1 + i % 30])
        except OSError:
            pass


def client(port, kind):
    asking = context(ssl.PROTOCOL_TLS_CLIENT)
    text = b"GET /tls/%s HTTP/1.1\r\nHost: a\r\n\r\n"
    while not over():
        peer = tried(connected, port)
        if not peer:
            time.sleep(0.05)
            continue
        peer.settimeout(0.3)
        if kind == 0:
            tried(peer.sendall, b"\x16\x03\x01\x02\x00\x01" + os.urandom(300))
            peer.close()
            continue
        try:
            with asking.wrap_socket(peer) as inside:
                for byte in text % os.urandom(100).hex().encode() * (3 if kind == 1 else 300):
                    inside.sendall(bytes([byte]))
        except OSError:
            pass


listening = [listener() for _ in range(3)]
pids = [fork(server, each) for each in listening]
reap(pids + [fork(client, each.getsockname()[1], kind) for kind, each in enumerate(listening)])
