"""Programs that are deleted or replaced while they run, threads of which exec, and a name that changes all the time."""
import os
import shutil
import time

import elf
from attack import folder, fork, over, reap, set_comm

content = elf.program([b"first_name_%d" % i for i in range(50)])
other = elf.program([b"other_name_%d" % i for i in range(3000)])


def replaced(number):
    path = f"{folder}/replaced-{number}"
    turn = 0
    while not over():
        elf.write(f"{path}.new", content if turn % 2 else other)
        os.rename(f"{path}.new", path)
        pid = fork(os.execv, path, [path])
        time.sleep(0.2)
        if turn % 3 == 0:
            os.unlink(path)
        elif turn % 3 == 1:
            elf.write(f"{path}.new", os.urandom(50_000))
            os.rename(f"{path}.new", path)
        time.sleep(0.2)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        turn += 1


def renaming():
    turn = 0
    while not over():
        turn += 1
        set_comm(b"name-%d" % turn)
        if turn % 10 == 0:
            time.sleep(0.01)


def again(turn):
    """The same pid becomes another program all the time."""
    os.execv("/bin/bash", ["bash", "-c", 'if [ "$1" -gt 0 ]; then exec -a "p$1" bash -c "$0" "$0" $(($1 - 1)); fi', ""] + [str(turn)])


def execs():
    while not over():
        script = 'n=$1; [ "$n" -gt 0 ] && exec -a "p$n" /bin/bash -c "$0" "$0" $((n - 1))'
        os.waitpid(os.posix_spawn("/bin/bash", ["bash", "-c", script, script, "300"], {}), 0)


reap([fork(replaced, number) for number in range(3)] + [fork(renaming), fork(execs)])
