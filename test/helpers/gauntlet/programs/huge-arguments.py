"""Processes with 2 MB of arguments and environment, whose names and command lines change, hold escapes, and no end."""
import ctypes
import os
import time

from attack import fork, http_server, over, reap, set_comm

port = http_server()
JUNK = [b"\x1b]0;owned\x07", b"--password=\xff\xfe", b"\xe2\x80\xae" * 50, b"a" * 120_000, b"\n\r\t" * 1000, b"$(reboot)", b"%s%n"]


def heavy(number):
    arguments = [b"java", b"-Dname=" + JUNK[number % 7]] + [JUNK[3]] * 12
    environment = {b"OTEL_SERVICE_NAME": JUNK[number % 7], b"KUBERNETES_SERVICE_HOST": b"1.2.3.4\n", b"X": JUNK[3]}
    environment[b"OTEL_RESOURCE_ATTRIBUTES"] = b"host.name=evil,k8s.pod.name=evil," + b"=,%zz=%" * 2000
    script = b"exec 3<>/dev/tcp/127.0.0.1/%d; printf 'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' >&3; read -t 1 -u 3 x" % port
    os.execve(b"/bin/bash", [b"bash", b"-c", b"exec 2>/dev/null; " + script] + arguments, environment)


def renaming(number):
    """Changes its name by /proc and its command line in place, while both are read."""
    turn = 0
    with open("/proc/self/comm", "wb", buffering=0) as comm:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        while not over():
            turn += 1
            comm.write((b"\x1b[2J)", b") R 1 1", b"\xff\xfe(((", b"\n\n")[turn % 4])
            set_comm(b"n%d\x1b" % turn)
            ctypes.memset(start, 1 + turn % 255, end - start)
            if turn % 100 == 0:
                time.sleep(0.01)


def loop():
    number = 0
    while not over():
        pids = [fork(heavy, number := number + 1) for _ in range(20)]
        for pid in pids:
            os.waitpid(pid, 0)


reap([fork(loop)] + [fork(renaming, number) for number in range(4)])
