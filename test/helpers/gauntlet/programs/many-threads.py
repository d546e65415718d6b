"""2,000 threads that change their names, of which some keep a processor busy."""
import os
import threading
import time

from attack import fork, over, reap, set_comm

threading.stack_size(65536)


def thread(number):
    turn = 0
    while not over():
        turn += 1
        set_comm(b"t%d-%d\x1b[" % (number, turn))
        time.sleep(0.5 if number % 100 else 0.001)


def process():
    for number in range(1000):
        try:
            threading.Thread(target=thread, args=(number,), daemon=True).start()
        except RuntimeError:
            break
    time.sleep(3600)


reap([fork(process), fork(process)])
