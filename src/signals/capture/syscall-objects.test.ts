// owns: host
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { instructionBytes, kindOf, opcode, type Section, sectionsOf } from '../../../test/helpers/bpf-elf.ts'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { findAsset } from '../../kernel/assets.ts'
import { BpfObject } from '../../kernel/bpf-object.ts'

/** Of Linux 4.18 (linux/bpf.h, BPF_MAXINSNS). */
const maxInstructions = 4096
/** Elf64_Rel and Elf64_Sym. */
const relocationBytes = 16
const symbolBytes = 24

/** Helpers of Linux 4.18 that tracing programs may call, by number (linux/bpf.h). */
const helpersOf418 = [
  1, // map_lookup_elem
  2, // map_update_elem
  3, // map_delete_elem
  4, // probe_read
  5, // ktime_get_ns
  12, // tail_call
  14, // get_current_pid_tgid
  16, // get_current_comm
  25, // perf_event_output
  80, // get_current_cgroup_id
]
/** get_current_uid_gid; since Linux 5.8: probe_read_user, probe_read_kernel, ringbuf_output and ringbuf_query. */
const helpersOf58 = [15, 112, 113, 130, 134]
/** get_current_ancestor_cgroup_id, since Linux 5.15: called where a constant says that it is there. */
const laterHelpers = [123]

/** Whether control can come back to an instruction, as the verifier before Linux 5.3 looks for it. */
function hasLoop(code: Buffer): boolean {
  const count = code.length / instructionBytes
  const state = new Uint8Array(count) // 1: on the path, 2: done
  const next = (index: number): number[] => {
    const at = index * instructionBytes
    const op = code[at]!
    if (op === opcode.exit) return []
    if (op === opcode.wide) return [index + 2]
    if ((op & 0x07) !== kindOf.jump || op === opcode.call) return [index + 1]
    const to = index + 1 + code.readInt16LE(at + 2)
    return op === opcode.goto ? [to] : [index + 1, to]
  }
  for (let entry = 0; entry < count; entry++) {
    if (state[entry] !== 0) continue
    const path = [{ index: entry, left: next(entry) }]
    state[entry] = 1
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const to = top.left.pop()
      if (to === undefined) {
        state[top.index] = 2
        path.pop()
      } else if (to < count && state[to] === 1) {
        return true
      } else if (to < count && state[to] === 0) {
        state[to] = 1
        path.push({ index: to, left: next(to) })
      }
    }
  }
  return false
}

/** The object for kernels that have a ring buffer. */
const ringObject = 'syscalls.bpf.o'

const isProgram = ({ name }: Section) => name.startsWith('tracepoint')

for (const [file, helpers] of [
  [ringObject, [...helpersOf418, ...helpersOf58, ...laterHelpers]],
  ['perf/syscalls.bpf.o', helpersOf418],
] as const) {
  test(`${file} has only instructions and helpers that its oldest kernel knows`, () => {
    const programs = sectionsOf(file).all.filter(isProgram)
    assert.ok(programs.length > 40)
    for (const { name, bytes } of programs) {
      for (let at = 0; at < bytes.length; at += instructionBytes) {
        const code = bytes[at]!
        const immediate = bytes.readInt32LE(at + 4)
        if (code === opcode.call) {
          assert.equal(bytes[at + 1]! >> 4, 0, `${name} calls another function of the object`)
          assert.ok(helpers.includes(immediate), `${name} calls helper ${immediate}`)
        }
        // -mcpu=v2: jumps over 32 bits came with Linux 5.1, atomic operations that return something with 5.12.
        assert.notEqual(code & 0x07, kindOf.jump32, `${name} jumps by 32 bits`)
        if (code === opcode.atomic64) assert.equal(immediate, 0, `${name} has a new atomic operation`)
      }
      assert.equal(hasLoop(bytes), false, `${name} has a loop`)
    }
  })

  test(`${file} needs no types of the kernel, and no global data before Linux 5.8`, () => {
    const sections = sectionsOf(file).all
    for (const { name, bytes } of sections)
      if (/^\.(rodata|data|kconfig|ksyms)/.test(name) && !(name === '.rodata' && file === ringObject))
        assert.equal(bytes.length, 0, name)
    // Variables that only name types; libbpf leaves their map out where the kernel has none, if no program refers to it.
    const bss = sections.findIndex(({ name }) => name === '.bss')
    const symbols = sections.find(({ name }) => name === '.symtab')!.bytes
    const relocations = sections.filter(({ name }) => name.startsWith('.reltracepoint'))
    for (const { name, bytes } of file === ringObject ? [] : relocations)
      for (let at = 0; at < bytes.length; at += relocationBytes) {
        const symbol = bytes.readUInt32LE(at + 12)
        assert.notEqual(symbols.readUInt16LE(symbol * symbolBytes + 6), bss, name)
      }
    const extension = sections.find(({ name }) => name === '.BTF.ext')!.bytes
    // Behind magic, version, flags and the header's length: offset and length of three tables; relocations are the last.
    if (extension.readUInt32LE(4) >= 32)
      assert.equal(extension.readUInt32LE(28), 0, 'bytes of relocations by the kernel’s BTF')
  })

  test(`no program of ${file} is larger than Linux 4.18 takes`, { skip: withoutBpf }, () => {
    const native = nativeOrThrow()
    const object = BpfObject.load(native, readFileSync(findAsset(file)!), { name: 'syscalls' })
    try {
      for (const { name } of object.programs()) {
        const { instructions } = native.programInfo(object.handle, name)
        assert.ok(instructions > 0 && instructions <= maxInstructions, `${name}: ${instructions}`)
      }
    } finally {
      object.close()
    }
  })
}

/** Since Linux 5.11 and 5.15: get_current_task_btf and task_pt_regs, behind a question for the latter. */
const helpersIfThere = [158, 175]

test('syscalls-tls.bpf.o has only instructions and helpers that Linux 5.10 knows', () => {
  const programs = sectionsOf('syscalls-tls.bpf.o').all.filter(({ name }) =>
    /^(\.text|tracepoint|uprobe|uretprobe)$/.test(name),
  )
  assert.equal(programs.length, 4)
  const known = [...helpersOf418, ...helpersOf58, ...laterHelpers, ...helpersIfThere]
  for (const { name, bytes } of programs)
    for (let at = 0; at < bytes.length; at += instructionBytes) {
      const [code, immediate] = [bytes[at]!, bytes.readInt32LE(at + 4)]
      const isHelper = code === opcode.call && bytes[at + 1]! >> 4 === 0
      if (isHelper) assert.ok(known.includes(immediate), `${name} calls helper ${immediate}`)
      // Linux 5.12: atomic operations that return something.
      if (code === opcode.atomic32 || code === opcode.atomic64)
        assert.equal(immediate, 0, `${name} has a new atomic operation`)
      // Arm's kernels before 6.0 take no calls of functions beside a program that goes on to others.
      if (code === opcode.call && name === 'tracepoint') assert.ok(isHelper, 'svc_tls_call calls a function')
    }
})
