# Talks over sockets in ways that a test chooses: runs the Python that it is given line by line in JSON, and answers each
# with the value of `result`. Names stay from one to the next.
import array, json, mmap, os, signal, socket, struct, sys, tempfile, threading, time

scope = {name: globals()[name] for name in
         ('array', 'mmap', 'os', 'signal', 'socket', 'struct', 'sys', 'tempfile', 'threading', 'time')}


def pair(family=socket.AF_INET, host='127.0.0.1'):
    """A client and the server's end of its connection, with the listening socket's port."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((host, 0))
    listener.listen(1)
    client = socket.socket(family, socket.SOCK_STREAM)
    client.connect(listener.getsockname()[:2])
    server, _ = listener.accept()
    listener.close()
    return client, server


def ends(client):
    return [client.getsockname()[1], client.getpeername()[1]]


scope.update(pair=pair, ends=ends)
print(json.dumps(os.getpid()), flush=True)
for line in sys.stdin:
    scope['result'] = None
    exec(json.loads(line), scope)
    print(json.dumps(scope['result']), flush=True)
