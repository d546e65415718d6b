"""Spends its time in two methods as 2:1, and some more below sorted(). With an argument it samples itself by
ITIMER_PROF and writes folded stacks to that file when SIGTERM ends it."""
import signal
import sys

stacks = {}


def sample(_number, frame):
    names = []
    while frame is not None:
        names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    stack = ";".join(reversed(names))
    stacks[stack] = stacks.get(stack, 0) + 1


def finish(_number, _frame):
    signal.setitimer(signal.ITIMER_PROF, 0)
    with open(sys.argv[1], "w") as file:
        file.writelines(f"{stack} {count}\n" for stack, count in stacks.items())
    sys.exit()


def spin(rounds):
    x = 88172645
    for _ in range(rounds):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return x


def leaf_a(rounds):
    return spin(rounds) + 1


def leaf_b(rounds):
    return spin(rounds) + 2


class Worker:
    def do_a(self, rounds):
        return leaf_a(rounds)

    def do_b(self, rounds):
        return leaf_b(rounds)


def work(worker):
    worker.do_a(20000)
    worker.do_b(10000)
    sorted([3, 1, 2], key=lambda value: leaf_b(1000))


if len(sys.argv) > 1:
    signal.signal(signal.SIGPROF, sample)
    signal.signal(signal.SIGTERM, finish)
    signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
worker = Worker()
while True:
    work(worker)
