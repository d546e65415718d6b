// owns: host
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compileBpf, withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { Lab, labObject } from '../../test/helpers/lab.ts'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { findAsset } from './assets.ts'
import { BpfObject, explainLoadLog, LoadError } from './bpf-object.ts'
import { readIterator } from './iterator.ts'

const refused = withoutBpf ? new Uint8Array() : compileBpf('refused')

test('a program that the verifier refuses is named with its finding and its log', {
  skip: withoutBpf,
}, () => {
  assert.throws(
    () => BpfObject.load(nativeOrThrow(), refused, { name: 'refused' }),
    (error: unknown) => {
      assert.ok(error instanceof LoadError)
      assert.equal(error.code, 'EACCES')
      assert.equal(error.refusal.program, 'svc_wild')
      assert.match(
        error.message,
        /^cannot load program 'svc_wild' of BPF object 'refused': R1 invalid mem access/,
      )
      assert.match(error.log, /processed \d+ insns/)
      return true
    },
  )
})

test('optional programs that the kernel refuses are left out with the reason', { skip: withoutBpf }, () => {
  const optional = ['svc_wild', 'svc_absent']
  const object = BpfObject.load(nativeOrThrow(), refused, { name: 'refused', optional })
  try {
    object.attach('svc_good')
    assert.match(object.leftOut.get('svc_wild')!, /^R1 invalid mem access/)
    assert.match(object.leftOut.get('svc_absent')!, /no_such_tracepoint/)
    const states = object.programs().map(({ name, attached, id }) => [name, attached, id > 0])
    assert.deepEqual(states, [
      ['svc_good', true, true],
      ['svc_wild', false, false],
      ['svc_absent', false, false],
    ])
    assert.throws(() => object.attach('svc_wild'), {
      code: 'EINVAL',
      message:
        "cannot attach program 'svc_wild' of BPF object 'refused': invalid argument (it was left out of the load)",
    })
  } finally {
    object.close()
  }
})

test('one optional program does not excuse another that is not', { skip: withoutBpf }, () => {
  assert.throws(
    () => BpfObject.load(nativeOrThrow(), refused, { name: 'refused', optional: ['svc_wild'] }),
    /cannot load program 'svc_absent'/,
  )
})

test('signals that come meanwhile do not keep a program from being loaded', {
  skip: withoutBpf,
}, async t => {
  const nothing = () => undefined
  process.on('SIGWINCH', nothing)
  t.after(() => process.off('SIGWINCH', nothing))
  // Every 0.2 ms; the verifier works for much longer at the larger programs.
  const sender = `const zero = new Int32Array(new SharedArrayBuffer(4))
    console.log('go')
    for (;;) { process.kill(${process.pid}, 'SIGWINCH'); Atomics.wait(zero, 0, 0, 0.2) }`
  const child = spawn(process.execPath, ['-e', sender], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await once(child.stdout!, 'data')
    BpfObject.load(nativeOrThrow(), readFileSync(findAsset('net.bpf.o')!), { name: 'net' }).close()
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

test('bytes that are no object are refused', () => {
  const native = nativeOrThrow()
  for (const bytes of [new Uint8Array(1), new Uint8Array(4096), new TextEncoder().encode('\x7fELF nothing')])
    assert.throws(
      () => BpfObject.load(native, bytes, { name: 'junk' }),
      /^Error: cannot open BPF object 'junk'/,
    )
})

test('an object that is cut short at any place is refused or opened, never more', {
  skip: withoutBpf,
}, () => {
  const native = nativeOrThrow()
  let opened = 0
  for (let length = 1; length < refused.length; length += 97) {
    try {
      native.objectClose(native.objectOpen(refused.subarray(0, length), 'cut'))
      opened++
    } catch (error) {
      assert.match(String(error), /^Error: cannot open BPF object 'cut'/)
    }
  }
  assert.equal(opened, 0)
})

test('attaching and detaching show in the kernel', { skip: withoutBpf }, () => {
  const { native, object } = new Lab()
  try {
    const link = object.attach('svc_burst')
    assert.equal(object.attach('svc_burst'), link)
    const program = native.programInfo(object.handle, 'svc_burst')
    const { id, programId, type } = native.linkInfo(link)
    assert.ok(id > 0)
    assert.equal(programId, program.id)
    assert.equal(type, 'raw_tracepoint')
    assert.equal(program.type, 'raw_tracepoint')
    assert.match(program.tag, /^[0-9a-f]{16}$/)
    object.detach('svc_burst')
    assert.throws(() => native.linkInfo(link), { code: 'EBADF' })
    native.linkDetach(link)
    assert.notEqual(object.attach('svc_burst'), link)
  } finally {
    object.close()
    object.close()
  }
})

test('run time and count are measured while statistics are on', { skip: withoutBpf }, () => {
  const lab = new Lab()
  const { native, object } = lab
  try {
    object.attach('svc_burst')
    const stats = native.statsEnable()
    for (let i = 0; i < 10; i++) lab.emit(1)
    native.statsDisable(stats)
    native.statsDisable(stats)
    const { runCount, runTimeNs } = native.programInfo(object.handle, 'svc_burst')
    assert.ok(runCount >= 10)
    assert.ok(runTimeNs > 0)
  } finally {
    object.close()
  }
})

test('an iterator returns every row, and says when there were more than the bound', {
  skip: withoutBpf,
}, () => {
  const { native, object } = new Lab()
  try {
    const link = object.attach('svc_tasks')
    const { bytes, truncated } = readIterator(native, link, 1 << 20)
    assert.equal(truncated, false)
    assert.equal(bytes.length % 8, 0)
    const rows = new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
    const threads = []
    for (let i = 0; i < rows.length; i += 2) if (rows[i] === process.pid) threads.push(rows[i + 1])
    assert.ok(threads.includes(process.pid))
    const cut = readIterator(native, link, 24)
    assert.equal(cut.truncated, true)
    assert.deepEqual(cut.bytes, bytes.subarray(0, 24))
    assert.equal(readIterator(native, link, 0).bytes.length, 0)
  } finally {
    object.close()
  }
})

test('what must be set before the load is refused after it', { skip: withoutBpf }, () => {
  const { native, object } = new Lab()
  try {
    const { handle } = object
    assert.throws(() => native.objectSetMaxEntries(handle, 'ring', 8192), { code: 'EINVAL' })
    assert.throws(() => native.objectSetData(handle, '.rodata', 0, new Uint8Array(4)), { code: 'EINVAL' })
    assert.throws(() => native.objectSetAutoload(handle, 'svc_burst', false), { code: 'EINVAL' })
    assert.throws(() => native.objectLoad(handle), { code: 'EINVAL' })
  } finally {
    object.close()
  }
})

test('data outside of its section and unknown names are refused', () => {
  if (withoutBpf) return
  const native = nativeOrThrow()
  const handle = native.objectOpen(labObject(), 'lab')
  try {
    assert.throws(() => native.objectSetData(handle, '.rodata', 1, new Uint8Array(4)), { code: 'ERANGE' })
    assert.throws(() => native.objectSetData(handle, '.rodata', 4_294_967_295, new Uint8Array(4)), {
      code: 'ERANGE',
    })
    assert.throws(() => native.objectSetData(handle, 'table', 0, new Uint8Array(4)), { code: 'EINVAL' })
    assert.throws(() => native.objectSetMaxEntries(handle, 'nothing', 1), { code: 'ENOENT' })
    assert.throws(() => native.objectAttach(handle, 'svc_burst'), /it is not loaded yet/)
    assert.throws(() => native.mapOpen(handle, 'table'), { code: 'EBADF' })
  } finally {
    native.objectClose(handle)
  }
  assert.throws(() => native.objectMaps(handle), { code: 'EBADF' })
})

test('the log of a load tells the program or the map, and the cause', () => {
  const check = (log: string, want: object) => assert.deepEqual(explainLoadLog(log), want)
  check("libbpf: map 'ring': failed to create: Invalid argument(-22)\nlibbpf: failed to load object 'x'\n", {
    program: undefined,
    map: 'ring',
    reason: 'failed to create: Invalid argument(-22): the kernel does not support this map type or size',
    unknown: true,
  })
  const twice = 'libbpf: Error in bpf_create_map_xattr(m):Invalid argument(-22). Retrying without BTF.\n'
  check(`${twice}libbpf: map 'm': failed to create: Argument list too long(-7)\n`, {
    program: undefined,
    map: 'm',
    reason: 'failed to create: Argument list too long(-7)',
    unknown: false,
  })
  check("libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\nBPF_STX uses reserved fields\n", {
    program: 'a',
    map: undefined,
    reason: 'the kernel has no atomic operations that return a value (Linux 5.12 and newer have them)',
    unknown: true,
  })
  check("libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\nunknown func bpf_task_storage_get#156\n", {
    program: 'a',
    map: undefined,
    reason: 'the kernel does not have the helper bpf_task_storage_get for programs of this type',
    unknown: true,
  })
  const absent = 'failed to resolve CO-RE relocation <byte_off> [1] struct mm_struct.mm_rb (0:1 @ offset 8)'
  check(`libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n3: <invalid CO-RE relocation>\n${absent}\n`, {
    program: 'a',
    map: undefined,
    reason: `${absent}: the kernel has no such type or member`,
    unknown: true,
  })
  const locked = 'program of this type cannot use helper bpf_probe_read#4'
  check(`libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n5: (85) call bpf_probe_read#4\n${locked}\n`, {
    program: 'a',
    map: undefined,
    reason:
      'programs cannot read kernel memory: the kernel is locked down in mode confidentiality (kernel_lockdown(7))',
    unknown: false,
  })
  check("libbpf: prog 'a': -- BEGIN PROG LOAD LOG --\n0: r1\nbad thing\nprocessed 1 insns (limit 1)\n", {
    program: 'a',
    map: undefined,
    reason: 'bad thing',
    unknown: false,
  })
  check('', { program: undefined, map: undefined, reason: 'the kernel gave no reason', unknown: false })
})
