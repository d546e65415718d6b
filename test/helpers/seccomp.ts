// Programs that may not call one system call, as a seccomp filter of a container has it.

/** Numbers on x86_64 (arch/x86/entry/syscalls/syscall_64.tbl) and aarch64 (include/uapi/asm-generic/unistd.h). */
const calls = { bpf: [321, 280], perf_event_open: [298, 241] } as const

/** What to put before a command line, so that `call` answers EPERM in it. */
export function withoutCall(call: keyof typeof calls): readonly string[] {
  const [x64, arm64] = calls[call]
  return [
    '/usr/bin/python3',
    '-c',
    `import ctypes, os, struct, sys
number = {'x86_64': ${x64}, 'aarch64': ${arm64}}[os.uname().machine]
refuse, allow = 0x00050001, 0x7fff0000 # SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *each) for each in code))
class Program(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(code), ctypes.addressof(filter))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])`,
  ]
}
