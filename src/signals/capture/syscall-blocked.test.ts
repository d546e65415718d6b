import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { until } from '../../../test/helpers/program.ts'
import { SyscallPeer } from '../../../test/helpers/syscall-peer.ts'
import { svcSyscallCall, svcSyscallCallKind } from '../../kernel/gen/syscalls.ts'
import { blockedCalls, parseSyscall } from './syscall-blocked.ts'

function check(text: string, arch: string, want: [string, number, number, number] | undefined): void {
  const bytes = parseSyscall(text, arch)
  const found = bytes && [
    svcSyscallCallKind[bytes[svcSyscallCall.kind]!],
    bytes.readUInt32LE(svcSyscallCall.fd),
    Number(bytes.readBigUInt64LE(svcSyscallCall.address)),
    bytes.readUInt32LE(svcSyscallCall.count),
  ]
  assert.deepEqual(found, want, text)
}

test('a call that a thread waits in is read from /proc', () => {
  check('0 0x5 0x7ffe00001000 0x400 0x0 0x0 0x0 0x7ffd 0x7f01\n', 'x64', ['buffer', 5, 0x7ffe00001000, 1024])
  check('288 0x3 0x0 0x0 0x80800 0x0 0x0 0x7ffd 0x7f01\n', 'x64', ['accept', 3, 0, 0x80800])
  check('43 0x3 0x7ff0 0x7ff8 0xffff 0x0 0x0 0x7ffd 0x7f01\n', 'x64', ['accept', 3, 0x7ff0, 0])
  check('207 0x9 0x7ff0 0x100 0x0 0x0 0x0 0x7ffd 0x7f01\n', 'arm64', ['buffer', 9, 0x7ff0, 256])
  check('202 0x5 0x7ffe 0x400 0x0 0x0 0x0 0x7ffd 0x7f01\n', 'x64', undefined) // futex
  check('running\n', 'x64', undefined)
  check('-1 0x7ffd 0x7f01\n', 'x64', undefined)
  check('', 'x64', undefined)
  check('0 0x5', 'riscv64', undefined)
})

test('the threads of a process are asked, and one that is gone has none', { skip: withoutRoot }, async () => {
  const peer = await SyscallPeer.start()
  try {
    const fd = await peer.run<number>(`
    client, server = pair()
    threading.Thread(target=lambda: server.recv(100), daemon=True).start()
    result = server.fileno()`)
    await until('the thread waits', 20_000, () =>
      [...blockedCalls(peer.pid)].some(call => call?.bytes.readUInt32LE(svcSyscallCall.fd) === fd),
    )
  } finally {
    await peer.close()
  }
  assert.deepEqual([...blockedCalls(peer.pid)], [])
})
