"""A program with 4,000 functions whose names are 4 KB long, which keeps a processor busy in them."""
import os

import elf
from attack import folder, fork, reap

# Names may share their ends: 40 texts of 4 KB have 4,000 names.
strings = bytearray(b"\0")
offsets = []
for block in range(40):
    start = len(strings)
    strings += (b"_ZN%d" % block + b"very_long_name_of_a_function_" * 150)[:4090] + b"\0"
    offsets += [start + i for i in range(100)]
program = elf.write(f"{folder}/long-names", elf.program([], strings=bytes(strings), offsets_of_names=offsets))
plain = elf.write(f"{folder}/two-megabytes", elf.program([b"f%05d_" % i + b"x" * 4080 for i in range(500)]))
reap([fork(os.execv, path, [path]) for path in (program, plain)])
