"""Names of generated code: /tmp/perf-PID.map of 100 MB, of endless length, with 4 KB names, a pipe, and /etc/shadow."""
import os

from attack import burn, executable_page, fork, over, reap


def process(make):
    path = f"/tmp/perf-{os.getpid()}.map"
    try:
        make(path)
        # The code is in the same place as the map says.
        burn()
    finally:
        os.unlink(path)


def large(path):
    with open(path, "wb") as file:
        for i in range(1_000_000):
            file.write(b"%x 40 function_%d_of_generated_code_with_a_name_that_is_long_enough_to_make_100_megabytes_in_all_lines\n" % (0x7000_0000_0000 + i * 64, i))


def long_names(path):
    with open(path, "wb") as file:
        for i in range(8000):
            file.write(b"%x 1000 " % (0x7F00_0000_0000 + i * 4096) + b"n" * 4080 + b"\n")
        file.write(b"0 ffffffffffffffff everything " + b"e" * 4000 + b"\n")


def endless_line(path):
    with open(path, "wb") as file:
        file.write(b"0 ffffffffffffffff ")
        file.truncate(4 << 30)


makes = [large, long_names, endless_line, os.mkfifo, lambda path: os.symlink("/dev/zero", path),
         lambda path: os.symlink("/etc/shadow", path), lambda path: os.symlink("/proc/self/mem", path)]
pids = [fork(process, make) for make in makes]
reap(pids)
for pid in pids:
    try:
        os.unlink(f"/tmp/perf-{pid}.map")
    except OSError:
        pass
