"""Programs whose sections lie: their headers, symbols, notes, DWARF, Go's table, links to debug files, packed names."""
import lzma
import os
import random
import struct

import elf
from attack import folder, fork, over, reap

random.seed(3)
S = elf.section
NAMES = [b"function_%d" % i for i in range(20)]
HUGE = 1 << 62
debug = folder + "/" + "d" * 30
os.mkfifo(debug + ".pipe")
os.symlink("/dev/zero", debug + ".zero")
bomb = b"".join(lzma.compress(bytes(16 << 20)) for _ in range(64))


def note(name, kind, content):
    pad = lambda b: b + bytes(-len(b) % 4)
    return struct.pack("<III", len(name), len(content), kind) + pad(name) + pad(content)


go = b"\xf1\xff\xff\xff\x00\x00\x01\x08" + struct.pack("<QQQQQQQ", 1 << 40, 1 << 40, 0, 16, 32, 64, 8) + b"\xff" * 5000
go_small = b"\xf1\xff\xff\xff\x00\x00\x01\x08" + struct.pack("<QQQQQQQ", 60_000, 3, 0x400000, 64, 64, 64, 64) + bytes(range(256)) * 8000
cases = [
    dict(extra=[S(b".symtab", 2, b"\xff" * 24_000, link=3, entry=0)]),
    dict(extra=[S(b".symtab", 2, b"", link=3, entry=24, size=HUGE, offset=0)]),
    dict(extra=[S(b".dynsym", 11, bytes(48_000), link=65535, entry=1)]),
    dict(extra=[S(b".strtab", 3, b"", size=HUGE, offset=HUGE)]),
    dict(extra=[S(b".note.gnu.build-id", 7, note(b"GNU\0", 3, b"../../../../../../etc/shadow\0"))]),
    dict(extra=[S(b".note.gnu.build-id", 7, note(b"GNU\0", 3, b"\x00" * 100_000))]),
    dict(extra=[S(b".note.gnu.build-id", 7, struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, 3) + bytes(100))]),
    dict(extra=[S(b".note.x", 7, note(b"", 0, b"") * 100_000)]),
    dict(extra=[S(b".gnu_debugdata", 1, bomb)]),
    dict(extra=[S(b".gnu_debugdata", 1, bomb[:500] + random.randbytes(5000))]),
    dict(extra=[S(b".gnu_debugdata", 1, b"\xfd7zXZ\0\0\4" + random.randbytes(50_000))]),
    dict(extra=[S(b".gnu_debuglink", 1, b"../../../../etc/shadow\0\0" + bytes(4))]),
    dict(extra=[S(b".gnu_debuglink", 1, os.path.basename(debug).encode() + b".pipe\0\0\0" + bytes(4))]),
    dict(extra=[S(b".gnu_debuglink", 1, os.path.basename(debug).encode() + b".zero\0\0\0" + bytes(4))]),
    dict(extra=[S(b".gopclntab", 1, go, address=0x500000)]),
    dict(extra=[S(b".gopclntab", 1, go_small, address=0x500000), S(b".go.buildinfo", 1, b"\xff Go buildinf:\x08\x02" + b"\xff" * 200)]),
    dict(extra=[S(b".eh_frame", 1, random.randbytes(300_000), flags=2, address=0x600000)]),
    dict(extra=[S(b".eh_frame", 1, struct.pack("<II", 12, 0) + b"\1zPLR\0\xff\xff" + struct.pack("<II", 8, 4) * 100_000, flags=2, address=0x600000)]),
    dict(extra=[S(b".eh_frame_hdr", 1, b"\1\x1b\x03\x3b" + b"\xff" * 100_000, flags=2, address=0x700000)]),
    dict(extra=[S(b".debug_line", 1, random.randbytes(200_000)), S(b".debug_info", 1, random.randbytes(200_000))]),
    dict(extra=[S(b".text", 8, b"", size=HUGE)] * 1000),
    dict(head=dict(shnum=65535)),
    dict(head=dict(shnum=0, shstrndx=65535)),
    dict(head=dict(shoff=HUGE)),
    dict(head=dict(shentsize=1)),
    dict(head=dict(shstrndx=60_000)),
    dict(extra=[S(b"n" * 50_000, 1, b"x") for _ in range(20)]),
]
children = []
for number, case in enumerate(cases):
    path = elf.write(f"{folder}/bad-{number}", elf.program(NAMES, **case))
    children.append(fork(os.execv, path, [path]))


def libraries():
    """The same names as libraries that are looked at, broken in other ways each time."""
    good = elf.program(NAMES + [b"SSL_read", b"SSL_write", b"SSL_free"])
    turn = 0
    while not over():
        turn += 1
        broken = bytearray(good)
        for _ in range(20):
            broken[random.randrange(120, len(broken))] = random.randrange(256)
        path = elf.write(f"{folder}/{'node' if turn % 2 else 'python3.11'}-{turn}", bytes(broken))
        pid = fork(os.execv, path, [path])
        import time
        time.sleep(0.1)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.unlink(path)


reap(children + [fork(libraries)])
