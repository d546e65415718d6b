import type { Interner } from '../../foundation/lib/interner.ts'
import { u64 } from '../../foundation/lib/u64.ts'
import { type StackSink, stackEnds } from '../../foundation/model/raw-stack.ts'
import {
  svcFileRecord,
  svcRuntimeRecord,
  svcStackRecord,
  svcStackRecordKind,
} from '../../kernel/gen/profile.ts'

const frameBytes = 8

/** Receives the kernel's id of a process's memory, which user space only passes back. */
export type ProcessMemoryTaken = (pid: number, memory: bigint) => void

/** Reads and delivers the record of `size` bytes at `at` (bpf/include/profile/layout.h). */
export function readStackRecord(
  bytes: Buffer,
  at: number,
  size: number,
  sink: StackSink,
  comms: Interner,
  taken: ProcessMemoryTaken,
): void {
  switch (svcStackRecordKind[bytes.readUInt32LE(at)]) {
    case 'user':
      if (size >= svcStackRecord.frame) readUserStack(bytes, at, size, sink, comms)
      break
    case 'kernel':
      if (size >= svcStackRecord.frame) readKernelStack(bytes, at, size, sink)
      break
    case 'file':
      if (size >= svcFileRecord.size) readFile(bytes, at, sink)
      break
    case 'runtime':
      if (size >= svcRuntimeRecord.size) readRuntime(bytes, at, sink, taken)
      break
    default:
  }
}

/** Thread name, at most 16 bytes. */
export function commAt(bytes: Buffer, at: number, comms: Interner): string {
  let end = at
  while (end < at + svcStackRecord.commSize && bytes[end] !== 0) end++
  return comms.intern(bytes, at, end)
}

function readUserStack(bytes: Buffer, at: number, size: number, sink: StackSink, comms: Interner): void {
  const held = Math.floor((size - svcStackRecord.frame) / frameBytes)
  const native = Math.min(held, bytes.readUInt16LE(at + svcStackRecord.frames))
  const inner = Math.min(held - native, bytes.readUInt16LE(at + svcStackRecord.inner))
  const from = at + svcStackRecord.frame
  sink.userStack({
    hash: u64(bytes, at + svcStackRecord.hash),
    pid: bytes.readUInt32LE(at + svcStackRecord.pid),
    comm: commAt(bytes, at + svcStackRecord.comm, comms),
    end: stackEnds[bytes.readUInt32LE(at + svcStackRecord.end)] ?? 'unsupported',
    ...readFrames(bytes, from, native),
    inner: readFrames(bytes, from + native * frameBytes, inner),
  })
}

function readFrames(bytes: Buffer, from: number, count: number) {
  return { spaces: spacesOf(bytes, from, count), offsets: offsetsOf(bytes, from, count) }
}

function spacesOf(bytes: Buffer, from: number, count: number): Uint16Array {
  const spaces = new Uint16Array(count)
  for (let i = 0; i < count; i++) spaces[i] = bytes.readUInt16LE(from + i * frameBytes + 6)
  return spaces
}

/** Low 48 bits of each. */
function offsetsOf(bytes: Buffer, from: number, count: number): Float64Array {
  const offsets = new Float64Array(count)
  for (let i = 0; i < count; i++) offsets[i] = bytes.readUIntLE(from + i * frameBytes, 6)
  return offsets
}

function readKernelStack(bytes: Buffer, at: number, size: number, sink: StackSink): void {
  const held = Math.floor((size - svcStackRecord.frame) / frameBytes)
  const count = Math.min(held, bytes.readUInt16LE(at + svcStackRecord.frames))
  sink.kernelStack(u64(bytes, at + svcStackRecord.hash), offsetsOf(bytes, at + svcStackRecord.frame, count))
}

function readFile(bytes: Buffer, at: number, sink: StackSink): void {
  sink.unknownFile({
    dev: bytes.readUInt32LE(at + svcFileRecord.dev),
    inode: u64(bytes, at + svcFileRecord.inode),
    generation: bytes.readUInt32LE(at + svcFileRecord.generation),
    pid: bytes.readUInt32LE(at + svcFileRecord.pid),
    start: u64(bytes, at + svcFileRecord.start),
    end: u64(bytes, at + svcFileRecord.end),
    offset: u64(bytes, at + svcFileRecord.offset),
  })
}

function readRuntime(bytes: Buffer, at: number, sink: StackSink, taken: ProcessMemoryTaken): void {
  const pid = bytes.readUInt32LE(at + svcRuntimeRecord.pid)
  taken(pid, bytes.readBigUInt64LE(at + svcRuntimeRecord.mm))
  sink.unknownRuntime({
    pid,
    file: bytes.readUInt32LE(at + svcRuntimeRecord.file),
    start: u64(bytes, at + svcRuntimeRecord.start),
    offset: u64(bytes, at + svcRuntimeRecord.offset),
  })
}
