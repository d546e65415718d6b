"""As many programs as come, each with a service name of its own, of which each makes a call."""
import os

from attack import http_server, over

port = http_server()
number = 0
while not over():
    pids = []
    for _ in range(20):
        number += 1
        environment = {
            "OTEL_SERVICE_NAME": f"service-{number}-" + "n" * 200,
            "OTEL_RESOURCE_ATTRIBUTES": ",".join(f"k{number}.{i}=v{i}" for i in range(60)),
        }
        script = f"exec 2>/dev/null; exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /{number} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' >&3; read -t 2 -u 3 x"
        pids.append(os.posix_spawn("/bin/bash", ["bash", "-c", script], environment))
    for pid in pids:
        os.waitpid(pid, 0)
