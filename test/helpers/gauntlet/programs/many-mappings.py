"""Processes with 60,000 mappings each, of which many run."""
import ctypes
import mmap

from attack import burn, fork, reap

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def process():
    size = 60_000 * 4096
    base = libc.mmap(None, size, 1, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    for i in range(0, 60_000, 2):
        libc.mprotect(base + i * 4096, 4096, 5)
    burn()


reap([fork(process) for _ in range(3)])
