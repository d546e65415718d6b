"""A namespace whose list of mounts has 1,500 lines of 15 KB, in which a process maps files that look like TLS libraries."""
import ctypes
import mmap
import os
import time

from attack import folder, rest

CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
MS_REC, MS_PRIVATE, MS_BIND = 0x4000, 0x40000, 0x1000
libc = ctypes.CDLL(None)
user, group = os.getuid(), os.getgid()
assert libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
assert libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0
assert libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None) == 0
os.chdir(folder)
libraries = []
for i in range(12):
    with open(f"libssl-{i}.so.3", "wb") as file:
        file.write(b"\x7fELF" + bytes(8192))
    libraries.append(os.open(f"libssl-{i}.so.3", os.O_RDONLY))
for _ in range(60):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
for i in range(1500):
    os.mkdir(str(i))
    if libc.mount(b".", str(i).encode(), None, MS_BIND, None) != 0:
        break
mapped = [mmap.mmap(each, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC) for each in libraries]
time.sleep(rest())
