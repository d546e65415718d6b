"""In a directory of followed logs: 10 GB of holes, links to /etc/shadow, pipes, lines without an end, many files."""
import os
import time

from attack import logs, order, over

os.makedirs(f"{logs}/sub.log", exist_ok=True)


def put(name, content):
    with open(f"{logs}/{name}", "ab") as file:
        file.write(content)


with open(f"{logs}/sparse.log", "wb") as file:
    file.truncate(10 << 30)
for name, target in [("shadow", "/etc/shadow"), ("secret", order["secret"]), ("zero", "/dev/zero"), ("self", f"{logs}/self.log"), ("mem", "/proc/self/mem"),
                     ("kmsg", "/proc/kmsg"), ("tty", "/dev/tty"), ("environ", "/proc/1/environ"), ("root", "/root")]:
    try:
        os.symlink(target, f"{logs}/{name}.log")
    except FileExistsError:
        pass
for name in ("pipe.log", "pipe2.log"):
    if not os.path.exists(f"{logs}/{name}"):
        os.mkfifo(f"{logs}/{name}")
for i in range(1000):
    put(f"many-{i}.log", b"one line\n")
turn = 0
while not over():
    put("endless.log", b"x" * (4 << 20))
    put("binary.log", os.urandom(1 << 20))
    put("json.log", b'{"a":' * 50_000 + b"\n")
    put("escape.log", b"\x1b]0;owned\x07\x00\xff\xfe\r\n" * 10_000)
    put("trace.log", b'{"trace_id":"' + b"f" * 100_000 + b'","level":' + b"[" * 10_000 + b"\n")
    for i in range(100):
        at = (turn * 100 + i) % 1000
        os.rename(f"{logs}/many-{at}.log", f"{logs}/many-{at}.log.1.log")
        put(f"many-{at}.log", b"rotated\n" * 10)
        os.unlink(f"{logs}/many-{at}.log.1.log")
    # The same name is a file, then a link, then a pipe.
    for make in (lambda p: put("swap.log", b"plain\n"), lambda p: os.symlink(order["secret"], p), os.mkfifo):
        make(f"{logs}/swap.log")
        time.sleep(0.05)
        os.unlink(f"{logs}/swap.log")
    with open(f"{logs}/sparse.log", "r+b") as file:
        file.truncate((10 << 30) + turn)
        file.seek((turn * 37 % 1000) << 20)
        file.write(b"in a hole\n")
    if turn % 8 == 7:
        os.truncate(f"{logs}/endless.log", 0)
        os.truncate(f"{logs}/binary.log", 0)
        os.truncate(f"{logs}/escape.log", 0)
        os.truncate(f"{logs}/json.log", 0)
    turn += 1
    time.sleep(0.1)
