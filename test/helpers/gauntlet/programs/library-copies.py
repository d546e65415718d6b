"""Processes that load 140 copies of libssl.so.3, use one, and end all at once; again and again."""
import ctypes
import glob
import shutil
import time

from attack import folder, fork, over, reap, rest

source = glob.glob("/usr/lib/*/libssl.so.3")[0]
copies = [shutil.copy(source, f"{folder}/libssl.so.3.{i}") for i in range(140)]


def load():
    for copy in copies:
        ctypes.CDLL(copy)
    time.sleep(min(6, rest()))


while not over():
    reap([fork(load)])
