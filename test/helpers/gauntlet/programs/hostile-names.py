"""Names of processes, programs and arguments with escapes, NULs, invalid UTF-8 and newlines; 2 MB of arguments."""
import os
import shutil
import time

from attack import connected, folder, fork, http_server, over, reap, rest, set_comm, tried

port = http_server()
NAMES = [b"\x1b]0;owned\x07", b"\x1b[2J\x1b[1;1H", b"a\nb=c", b"\xff\xfe\xfd", b"%s%n%x", b"../../etc", b"\"},{\"", b"<script>", b") R 1 1 (", b"${7*7}", b"\r\n"]


def process(name):
    set_comm(name)
    peer = connected(port)
    peer.sendall(b"GET /" + os.urandom(4).hex().encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    peer.recv(100)
    time.sleep(rest())


def program(name):
    path = os.fsencode(folder) + b"/" + name.replace(b"/", b"_") + b"x" * 200
    shutil.copy(b"/bin/sleep", path)
    os.execve(path, [b"sleep", b"%d" % (rest() + 1)], {b"OTEL_SERVICE_NAME": name * 1000, b"\xff=\x1b": name})


def arguments(name):
    script = b"exec 3<>/dev/tcp/127.0.0.1/%d; echo -e 'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r' >&3; read -t %d -u 3 x; sleep %d" % (port, 2, rest() + 1)
    more = [(name * 20000)[:131000]] * 14
    os.execve("/bin/bash", [b"bash", b"-c", script, *more], {})


reap([fork(work, name) for name in NAMES for work in (process, program, arguments)])
