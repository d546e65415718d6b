"""Beginnings of every protocol with lengths that lie, then random bytes, at their usual ports and at others."""
import random
import struct

from attack import connected, fork, listener, over, reap, serve, tried

random.seed(11)
USUAL = [5432, 3306, 6379, 9092, 27017, 5672, 1883, 4222, 11211, 8443, 50051, 1433]
BIG = b"\x7f\xff\xff\xff"


def beginnings():
    yield struct.pack(">II", 8, 80877103) + b"S" * 200
    yield b"\x00\x00\x10\x00\x00\x03\x00\x00user\0" + b"u" * 4000 + b"\0"
    yield b"Q" + BIG + b"select " + b"(" * 60_000
    yield b"P" + struct.pack(">I", 60_000) + b"s\0" + b"select '" + b"\\'" * 29_000
    yield b"B" + struct.pack(">I", 40) + b"\0\0\xff\xff" + b"\xff" * 60
    yield b"\x4a\x00\x00\x00\x0a8.0.11\0" + bytes(60)
    yield b"\xff\xff\xff\x00\x03" + b"SELECT /*" + b"x" * 60_000
    yield b"*1000000000\r\n$1000000000\r\n" + b"SET" * 1000
    yield b"*-1\r\n" * 5000 + b"*" + b"9" * 4000 + b"\r\n"
    yield b"*2\r\n$3\r\nGET\r\n$60000\r\n" + b"k" * 60_000 + b"\r\n"
    yield BIG + struct.pack(">hhi", 3, 12, 1) + b"\x7f\xff" + b"client" * 1000
    yield struct.pack(">ihhi", 100, 0, 9, 5) + b"\xff" * 200
    yield struct.pack("<iiii", 0x7FFFFFFF, 1, 0, 2013) + b"\0\0\0\0\0" + b"\x7f\xff\xff\x7f" * 500
    yield struct.pack("<iiii", 500, 1, 0, 2013) + b"\0\0\0\0\0" + (b"\x03a\0" + struct.pack("<i", 400)) * 120
    yield b"AMQP\0\0\x09\x01" + b"\x01\0\x01" + BIG + b"\0\x3c\0\x28" + b"\xff" * 300
    yield b"\x10\xff\xff\xff\x7f\0\x04MQTT\x05\xff" + b"\xff" * 500
    yield b"PUB " + b"s." * 2000 + b" 99999999999\r\n" + b"INFO {" + b'"a":{' * 2000 + b"\r\n"
    yield b"get " + b"k " * 20_000 + b"\r\nset k 0 0 999999999999\r\n"
    yield b"\x80\x00\xff\xff\xff\x00\x00\x00\xff\xff\xff\xff" + b"\xff" * 500
    yield b"\x16\x03\x01\xff\xff\x01\xff\xff\xff\x03\x03" + b"\xff" * 600
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32) + b"\xff" + bytes(400)
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x01\xff\xff\xff\xff\xff" + b"\x82" * 5000
    yield b"\x12\x34\x81\x80" + b"\xff" * 8 + b"\xc0\x0c" * 500


def server(port):
    try:
        listening = listener(port)
    except OSError:
        listening = listener()
    every = list(beginnings())
    serve(listening, lambda data: random.choice(every)[: random.randrange(1, 70_000)] + random.randbytes(300))
    return listening.getsockname()[1]


def client(ports):
    while not over():
        for port in ports:
            for begin in beginnings():
                peer = connected(port)
                peer.settimeout(0.02)
                for _ in range(3):
                    tried(peer.sendall, begin)
                    tried(peer.recv, 1 << 17)
                    begin = bytes(byte ^ (random.randrange(256) if random.random() < 0.02 else 0) for byte in begin[:600]) + random.randbytes(100)
                peer.close()


ports = [server(port) for port in USUAL]
reap([fork(client, ports)])
