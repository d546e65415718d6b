"""Files that change while they are read: logs renamed, cut, replaced by pipes and folders; perf maps that grow and shrink."""
import os
import shutil
import time

from attack import burn, fork, logs, over, reap, tried


def rotating(number):
    path = f"{logs}/changes-{number}.log"
    turn = 0
    while not over():
        turn += 1
        with open(path, "ab") as file:
            file.write(b"INFO turn %d\n" % turn * 200 + b"no end of line")
        tried([os.remove, lambda p: os.truncate(p, 0), lambda p: os.rename(p, f"{p}.{turn % 5}.log"),
               lambda p: os.truncate(p, 1 << 40), lambda p: os.chmod(p, 0), os.remove][turn % 6], path)
        if turn % 6 == 5:
            tried(os.remove, path)
            (os.mkfifo if turn % 4 else os.mkdir)(path) if not os.path.lexists(path) else None
            time.sleep(0.01)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                tried(os.remove, path)


def many():
    turn = 0
    while not over():
        turn += 1
        for i in range(500):
            with open(f"{logs}/short-{turn}-{i}.log", "w") as file:
                file.write("x\n")
        for i in range(500):
            tried(os.remove, f"{logs}/short-{turn}-{i}.log")


def mapped():
    """Its perf map grows, is cut and replaced while it is busy."""
    path = f"/tmp/perf-{os.getpid()}.map"
    writer = fork(writing, path)
    burn()
    os.kill(writer, 9)


def writing(path):
    turn = 0
    while not over():
        turn += 1
        with open(path + ".new" if turn % 3 == 0 else path, "ab") as file:
            for i in range(5000):
                file.write(b"%x 40 name_%d_%d\n" % (0x7F00_0000_0000 + i * 64, turn, i))
        if turn % 3 == 0:
            tried(os.rename, path + ".new", path)
        if turn % 20 == 0:
            os.truncate(path, 100)
    for each in (path, path + ".new"):
        tried(os.remove, each)


pids = [fork(rotating, number) for number in range(3)] + [fork(many)] + [fork(mapped) for _ in range(2)]
reap(pids)
for pid in pids:
    tried(os.remove, f"/tmp/perf-{pid}.map")
    tried(os.remove, f"/tmp/perf-{pid}.map.new")
