import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SyscallNames } from './syscall-names.ts'

test('numbers are those of the architecture', () => {
  const check = (architecture: string, number: number, name: string) => {
    const names = new SyscallNames(architecture)
    assert.deepEqual([names.name(number), names.number(name)], [name, number])
  }
  check('x64', 0, 'read')
  check('x64', 59, 'execve')
  check('x64', 257, 'openat')
  check('x64', 334, 'rseq')
  check('x64', 424, 'pidfd_send_signal')
  check('x64', 450, 'set_mempolicy_home_node')
  check('arm64', 0, 'io_setup')
  check('arm64', 63, 'read')
  check('arm64', 221, 'execve')
  check('arm64', 222, 'mmap')
  check('arm64', 243, 'recvmmsg')
  check('arm64', 260, 'wait4')
  check('arm64', 294, 'kexec_file_load')
  check('arm64', 450, 'set_mempolicy_home_node')
})

test('a number without a name has one that can be asked for', () => {
  const names = new SyscallNames('x64')
  assert.equal(names.name(500), 'syscall_500')
  assert.equal(names.number('syscall_500'), 500)
  assert.equal(names.number('no_such_call'), undefined)
})

test('each name stands once, and an architecture that is not known has none', () => {
  for (const architecture of ['x64', 'arm64']) {
    const { all } = new SyscallNames(architecture)
    assert.ok(all.length > 300)
    for (const name of all) assert.match(name, /^[a-z_][a-z0-9_]*$/)
  }
  assert.equal(new SyscallNames('arm64').number('open'), undefined)
  assert.deepEqual(new SyscallNames('mips').all, [])
})
