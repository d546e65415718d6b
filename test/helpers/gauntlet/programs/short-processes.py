"""As many short processes a second as there is room for, up to 1,000."""
import os
import time

from attack import over

began = time.monotonic()
count = 0
while not over():
    os.waitpid(os.posix_spawn("/bin/true", ["true", str(count)], {}), 0)
    count += 1
    time.sleep(max(0, began + count / 1000 - time.monotonic()))
