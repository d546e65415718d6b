"""Programs whose functions have names that take a demangler of C++ or Rust for ever, or all of its stack."""
import os

import elf
from attack import folder, fork, reap

names = [
    b"_Zcv" + b"T_" + b"IT_" * 60 + b"E" * 60 + b"v",
    b"_ZcvT_" + b"IT_" * 60,
    b"_ZN1AcvT_" + b"IT_" * 60 + b"E" * 61 + b"v",
    # So many references to parameters times so many templates are what libiberty takes on its stack.
    b"_Z1fI" + b"RT_" * 600 + b"1aIiE" * 400 + b"Evv",
    b"_Z1fI" + b"OT_" * 1300 + b"Evv",
    b"_Z1f" + b"I1a" * 1000 + b"E" * 1000 + b"vv",
    b"_Z" + b"N1a" * 1300 + b"E" * 5,
    b"_Z1f" + b"P" * 4000 + b"i",
    b"_Z1fI" + b"XadL_Z1gI" * 300 + b"iEvvEE" * 300 + b"Evv",
    b"_Z1fI" + b"J" * 2000 + b"E" * 2000 + b"Evv",
    b"_Z1fIN1aIiES_S0_S1_S2_S3_S4_S5_S6_S7_S8_S9_" + b"SA_S_" * 500 + b"EEvv",
    b"_Z1fDT" + b"cl" * 1900 + b"E",
    b"_Z1fI" + b"".join(b"St4pairIS%c_S%c_E" % (48 + i % 10, 48 + i % 10) for i in range(200)) + b"Evv",
    b"_R" + b"NvB_" * 900 + b"1a",
    b"_R" + b"IC1a" * 900 + b"E" * 300,
    b"_RINvC1a1b" + b"TB9_B9_E" * 300 + b"E",
    b"_RYFGa_" * 500,
    b"_RNvMC0FFFF" + b"F" * 3900 + b"Eu1a",
    b"_ZN" + b"999999999999999999999a" * 100 + b"E",
    b"_ZN17h" + b"f" * 4000 + b"17h0123456789abcdefE",
    b"\xff\xfe_Z" + b"\x1b]0;x\x07" * 400,
    b"?" + b"$" * 4000,
]
children = []
for number, name in enumerate(names):
    path = elf.write(f"{folder}/mangled-{number}", elf.program([name[:4095], name[:4090] + b"E", b"_Z1f" + name[:4000]]))
    children.append(fork(os.execv, path, [path]))
reap(children)
