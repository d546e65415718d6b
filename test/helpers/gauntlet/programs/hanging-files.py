"""A file system of a user's own (FUSE) that answers its programs and nobody else ever, below an overlay that asks it."""
import os
import time

from attack import folder, http_server, order, over, rest
from fuse import content, files, friends, mount, mount_own, names

# Names that the agent looks behind: the version of Node.js, functions of TLS libraries.
NODE, SSL = 2, 3
names.update({b"node": NODE, b"libssl.so.3": SSL})
library = next((each for each in ("/usr/lib/x86_64-linux-gnu/libssl.so.3", "/usr/lib/aarch64-linux-gnu/libssl.so.3")
                if os.path.exists(each)), "/bin/sh")
files.update({NODE: content("/usr/bin/python3"), SSL: content(library)})

WORK = """
import mmap, os, socket, sys, time
file = os.open(sys.argv[2], os.O_RDONLY)
code = mmap.mmap(file, os.fstat(file).st_size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    peer.sendall(b"GET /hanging HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
    while peer.recv(4096):
        pass
    for _ in range(1000000):
        pass
"""


def main():
    low, more, upon = (os.path.join(folder, name) for name in ("low", "more", "upon"))
    for each in (low, more, upon):
        os.mkdir(each)
    port = http_server()
    mount_own(low, order["fuse"])
    mount("none", upon, "overlay", f"lowerdir={low}:{more}")
    while not over():
        children = []
        for where in (upon, low, upon):
            pid = os.fork()
            if pid == 0:
                time.sleep(0.2)  # it is made known meanwhile
                words = ["node", "-c", WORK, str(port), os.path.join(where, "libssl.so.3"), str(min(4, rest()))]
                os.execve(os.path.join(where, "node"), words, {"PYTHONHOME": "/usr", "PATH": "/usr/bin"})
            friends.add(pid)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)


if order["fuse"]:
    main()
