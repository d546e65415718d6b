"""A file system of a user's own (FUSE) that answers its friends and nobody else ever."""
import ctypes
import os
import stat
import struct
import threading

CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
# Of linux/fuse.h.
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, OPENDIR, READDIR, STATFS, FORGETS = 1, 2, 3, 14, 15, 26, 27, 28, 17, 42
DONE = (18, 29)  # RELEASE, RELEASEDIR
libc = ctypes.CDLL(None, use_errno=True)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def mount(source, point, kind, options):
    check(libc.mount(source.encode(), point.encode(), kind.encode(), 0, options.encode()), f"mount {kind}")


ROOT = 1
# By the number of the node, which names tell.
names, files = {}, {}
friends = {os.getpid()}
# Who asked and is not answered.
hung = set()


def attributes(node):
    data = files.get(node, b"")
    mode, links = (stat.S_IFDIR | 0o755, 2) if node == ROOT else (stat.S_IFREG | 0o755, 1)
    return struct.pack("<6Q10I", node, len(data), (len(data) + 511) // 512, 1, 1, 1, 0, 0, 0, mode, links, 0, 0, 0, 4096, 0)


def reply(fd, unique, data=b"", error=0):
    os.write(fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)


def answer(fd, operation, unique, node, body):
    if operation == INIT:
        ahead, = struct.unpack_from("<I", body, 8)
        reply(fd, unique, struct.pack("<4I2H2I2HI", 7, 31, ahead, 0, 12, 10, 65536, 1, 1, 0, 0) + bytes(28))
    elif operation == LOOKUP:
        found = names.get(body.rstrip(b"\0"))
        if found is None:
            reply(fd, unique, error=2)
        else:
            reply(fd, unique, struct.pack("<4Q2I", found, 0, 0, 0, 0, 0) + attributes(found))
    elif operation == GETATTR:
        reply(fd, unique, struct.pack("<Q2I", 0, 0, 0) + attributes(node))
    elif operation in (OPEN, OPENDIR):
        reply(fd, unique, struct.pack("<Q2I", 0, 0, 0))
    elif operation == READ:
        _, offset, size = struct.unpack_from("<2QI", body)
        reply(fd, unique, files[node][offset:offset + size])
    elif operation == READDIR or operation in DONE:
        reply(fd, unique)
    elif operation == STATFS:
        reply(fd, unique, struct.pack("<5Q4I", 100, 50, 50, 10, 5, 4096, 255, 4096, 0) + bytes(24))
    else:
        reply(fd, unique, error=38)


def serve(fd):
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError as error:
            if error.errno == 2:  # whoever asked has gone
                continue
            return
        _, operation, unique, node, _, _, pid, _ = struct.unpack_from("<2I2Q4I", request)
        if operation in (FORGET, FORGETS):
            continue
        if pid not in friends and pid != 0 and operation != INIT:
            hung.add(pid)
            continue
        answer(fd, operation, unique, node, request[40:])


def mount_own(point, device):
    """Enters namespaces of its own and mounts it there."""
    user, group = os.getuid(), os.getgid()
    check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
    for path, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{path}", "w") as file:
            file.write(text)
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount /")
    fd = os.open(device, os.O_RDWR)
    mount("none", point, "fuse", f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other")
    threading.Thread(target=serve, args=(fd,), daemon=True).start()
