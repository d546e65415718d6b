"""Writes programs for x86-64 by hand: functions that keep a processor busy, under any names, and any sections."""
import os
import struct

BASE = 0x400000
HEAD = 64 + 56


def functions(count):
    """Machine code: one function after the other, 16 bytes each, called in turn for ever. Returns code and offsets."""
    calls = bytearray()
    loop_at = 0
    first = (loop_at + 5 * count + 5 + 15) // 16 * 16
    for i in range(count):
        target = first + 16 * i
        calls += b"\xe8" + struct.pack("<i", target - (len(calls) + 5))
    calls += b"\xe9" + struct.pack("<i", -(len(calls) + 5))
    calls += b"\x90" * (first - len(calls))
    # mov ecx, 20000; dec ecx; jnz; ret
    body = (b"\xb9\x20\x4e\x00\x00" + b"\xff\xc9" + b"\x75\xfc" + b"\xc3").ljust(16, b"\x90")
    return bytes(calls + body * count), [first + 16 * i for i in range(count)]


def section(name, kind, body, link=0, info=0, entry=0, flags=0, address=0, size=None, offset=None):
    return dict(name=name, kind=kind, body=body, link=link, info=info, entry=entry, flags=flags, address=address,
                size=size, offset=offset)


def program(names, extra=(), head=None, strings=None, offsets_of_names=None):
    """A whole file. `names` are bytes, one for each function; `extra` more sections; `head` changes fields of the ELF
    header; with `offsets_of_names` the names are there in `strings`."""
    code, offsets = functions(len(names) if offsets_of_names is None else len(offsets_of_names))
    if strings is None:
        strings, at = bytearray(b"\0"), []
        for name in names:
            at.append(len(strings))
            strings += name + b"\0"
    else:
        at = offsets_of_names
    symbols = bytearray(24)
    for offset, place in zip(at, offsets):
        symbols += struct.pack("<IBBHQQ", offset, 0x12, 0, 1, BASE + HEAD + place, 16)
    sections = [
        section(b"", 0, b""),
        section(b".text", 1, code, flags=6, address=BASE + HEAD),
        section(b".symtab", 2, bytes(symbols), link=3, info=1, entry=24),
        section(b".strtab", 3, bytes(strings)),
        *extra,
    ]
    names_of_sections = bytearray()
    for each in sections:
        each["at"] = len(names_of_sections)
        names_of_sections += each["name"] + b"\0"
    own = len(names_of_sections)
    names_of_sections += b".shstrtab\0"
    sections.append(dict(section(b".shstrtab", 3, bytes(names_of_sections)), at=own))
    body = bytearray()
    table = bytearray()
    for each in sections:
        offset = HEAD + len(body)
        body += each["body"]
        table += struct.pack(
            "<IIQQQQIIQQ", each["at"], each["kind"], each["flags"], each["address"],
            offset if each["offset"] is None else each["offset"],
            len(each["body"]) if each["size"] is None else each["size"], each["link"], each["info"], 1, each["entry"],
        )
    fields = dict(shoff=HEAD + len(body), shentsize=64, shnum=len(sections), shstrndx=len(sections) - 1, phnum=1)
    fields.update(head or {})
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, BASE + HEAD, 64, fields["shoff"], 0, 64, 56, fields["phnum"], fields["shentsize"],
        fields["shnum"], fields["shstrndx"],
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, HEAD + len(code), HEAD + len(code), 4096)
    return header + load + bytes(body) + bytes(table)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755)
    return path
