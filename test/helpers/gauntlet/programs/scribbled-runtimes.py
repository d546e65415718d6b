"""Python processes whose interpreter state is random, or a ring, while native code keeps a processor busy."""
import ctypes
import platform
import random
import struct

from attack import executable_page, fork, over, reap

api = ctypes.pythonapi
api.PyThreadState_Get.restype = ctypes.c_void_p


def process(seed):
    random.seed(seed)
    state = api.PyThreadState_Get()
    size = 200
    junk = random.randbytes(size) if seed % 2 else struct.pack("<Q", state) * (size // 8)
    if platform.machine() != "x86_64":
        return
    _, source = page = executable_page(junk)
    # mov rdi, state; mov rsi, source; mov ecx, size; rep movsb; jmp $
    code = b"\x48\xbf" + struct.pack("<Q", state) + b"\x48\xbe" + struct.pack("<Q", source)
    code += b"\xb9" + struct.pack("<I", size) + b"\xf3\xa4\xeb\xfe"
    _, address = other = executable_page(code)
    ctypes.PYFUNCTYPE(None)(address)()  # with the lock, as the interpreter's own code
    return page, other


reap([fork(process, seed) for seed in range(8)])
