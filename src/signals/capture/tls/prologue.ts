// Checks whether bytes look like the start of a function. A probe inside an instruction would crash the program that
// executes it, so unknown code is not probed.

import type { ElfFile } from '../../../foundation/lib/elf-symbols.ts'

/** First bytes of instructions at which compiled functions begin (Intel SDM, volume 2), as hexadecimal prefixes. */
const x64: readonly string[] = [
  'f30f1efa', // endbr64
  ...['50', '51', '52', '53', '54', '55', '56', '57'], // push
  ...['4150', '4151', '4152', '4153', '4154', '4155', '4156', '4157'],
  ...['4883ec', '4881ec'], // sub rsp
  ...['4883e4'], // and rsp: alignment
  ...['4885', '85', '4d85', '4585'], // test
  ...['4889', '4989', '4c89', '89', '4189', '4489'], // mov to a register
  ...['488b', '498b', '4c8b', '8b', '448b', '418b', '64488b'], // mov from memory
  ...['488d', '4c8d', '8d'], // lea
  ...['31', '33', '4531', '4533', '4831'], // xor
  ...['b8', 'b9', 'ba', 'bb', 'be', 'bf', '41b8', '41b9', '48c7', 'c7'], // mov of a constant
  ...['4883', '83', '80', '4180', '813f', '833f', 'f6', '48833f'], // compare with a constant, and similar
  ...['0fb6', '0fb7', '480fb6', '4863', '4c63'], // widening moves
  ...['e9', 'eb', 'ff25', '0f1f', '660f1f', '90'], // jump to the implementation; padding for tracers
]

const breakpoint = 0xcc

/** Fault in a function's first bytes, or undefined. */
export function startFault(bytes: Buffer, machine: ElfFile['machine'], offset: number): string | undefined {
  if (machine === 'arm64') return armFault(bytes, offset)
  if (bytes[0] === breakpoint) return 'the file itself has a breakpoint at this function'
  const text = bytes.toString('hex')
  return x64.some(prefix => text.startsWith(prefix)) ? undefined : `unknown function start: ${text}`
}

/** All instructions have 4 bytes; zero is invalid, and 0xd42..... are BRK and similar (Arm ARM, C4.1). */
function armFault(bytes: Buffer, offset: number): string | undefined {
  if (offset % 4 !== 0 || bytes.length < 4) return 'the address is not the start of an instruction'
  const first = bytes.readUInt32LE(0)
  return first === 0 || first >>> 20 === 0xd42
    ? 'the first bytes are not an instruction of a function'
    : undefined
}

/**
 * Fault in a function's bytes in the memory of a process, or undefined. Another tracer's breakpoint at its start is
 * allowed: the kernel keeps the instruction for both.
 */
export function memoryFault(file: Buffer, memory: Buffer, machine: ElfFile['machine']): string | undefined {
  const broken = machine === 'x64' ? memory[0] === breakpoint : memory.length >= 4 && isBreak(memory)
  const skip = broken ? (machine === 'x64' ? 1 : 4) : 0
  return file.subarray(skip).equals(memory.subarray(skip))
    ? undefined
    : 'the memory of a process differs from the file at this function'
}

function isBreak(memory: Buffer): boolean {
  return memory.readUInt32LE(0) >>> 20 === 0xd42
}
