"""What the attacks share: the order they got, the end of their time, children, servers, generated code."""
import ctypes
import json
import mmap
import os
import platform
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time

order = json.loads(sys.argv[1])
seconds = order["seconds"]
# A folder of its own, and one whose *.log the agent follows.
folder, logs = order["folder"], order["logs"]
# The agent's ports: API and host metrics.
api, exporter = order["api"], order["exporter"]

_end = time.monotonic() + seconds
_most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (_most, _most))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
# What loops for ever ends by itself, whoever forgets it.
resource.setrlimit(resource.RLIMIT_CPU, (seconds + 5, seconds + 5))


def over():
    return time.monotonic() >= _end


def rest():
    return max(0.0, _end - time.monotonic())


def fork(work, *arguments):
    """Runs `work` in a child, which leaves without a word. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*arguments)
    except BaseException:
        pass
    os._exit(0)


def reap(pids):
    """Waits for children until the time is over, then ends them."""
    waiting = set(pids)
    while waiting and not over():
        pid, _ = os.waitpid(-1, os.WNOHANG)
        waiting.discard(pid)
        if pid == 0:
            time.sleep(0.02)
    for pid in waiting:
        try:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        except OSError:
            pass


def listener(port=0, backlog=4096, host="127.0.0.1"):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((host, port))
    server.listen(backlog)
    return server


def connected(port):
    client = socket.create_connection(("127.0.0.1", port), timeout=2)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def tried(work, *arguments):
    """Runs `work`, which the other side may end at any moment."""
    try:
        return work(*arguments)
    except OSError:
        return None


def serve(server, answer):
    """Answers what each connection sends by `answer(bytes)`: bytes, or nothing; in a child. Returns its pid."""

    def loop():
        selector = selectors.DefaultSelector()
        server.setblocking(False)
        selector.register(server, selectors.EVENT_READ)
        while not over():
            for key, _ in selector.select(0.2):
                if key.fileobj is server:
                    try:
                        peer, _ = server.accept()
                        selector.register(peer, selectors.EVENT_READ)
                    except OSError:
                        pass
                    continue
                try:
                    data = key.fileobj.recv(1 << 18)
                    reply = answer(data) if data else None
                    if reply:
                        key.fileobj.settimeout(1)
                        key.fileobj.sendall(reply)
                    if data:
                        continue
                except OSError:
                    pass
                selector.unregister(key.fileobj)
                key.fileobj.close()

    return fork(loop)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def http_server(server=None):
    """A server of HTTP/1 that answers each head by 200. Returns its port."""
    server = server or listener()
    serve(server, lambda data: OK * max(1, data.count(b"\r\n\r\n")))
    return server.getsockname()[1]


def executable_page(code):
    """Memory that holds `code` and runs it. Returns it and its address."""
    page = mmap.mmap(-1, max(4096, len(code)), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return page, ctypes.addressof(ctypes.c_char.from_buffer(page))


def burn(code_of_loop=None):
    """Keeps a processor busy in generated code until the process is ended."""
    loops = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}  # a jump to itself
    page, address = executable_page(code_of_loop or loops[platform.machine()])
    ctypes.CFUNCTYPE(None)(address)()
    page.close()


def set_comm(name):
    """The name of this thread, as bytes."""
    ctypes.CDLL(None).prctl(15, ctypes.c_char_p(name), 0, 0, 0)
