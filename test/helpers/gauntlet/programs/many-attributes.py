"""500 processes with 128 KB of OTEL_RESOURCE_ATTRIBUTES each, and one HTTP call."""
import os

from attack import fork, http_server, over, reap, rest

port = http_server()
script = f'exec 2>/dev/null; exec 3<>/dev/tcp/127.0.0.1/{port}; printf "GET /$$ HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n" >&3; read -t 5 -u 3 l; read -t {int(rest()) + 1} l <> <(:)'


def call(number):
    attributes = ",".join(f"key{i}.of.{number}={'%c' % (97 + i % 26) * 1950}" for i in range(64))
    environment = {"OTEL_RESOURCE_ATTRIBUTES": attributes[:131000], "OTEL_SERVICE_NAME": f"service {number}"}
    os.execve("/bin/bash", ["bash", "-c", script], environment)


children = []
for number in range(500):
    if over():
        break
    children.append(fork(call, number))
reap(children)
