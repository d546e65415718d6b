// Compiled BPF objects, as they lie on disk (elf(5)).

import { readFileSync } from 'node:fs'
import { findAsset } from '../../src/kernel/assets.ts'

export interface Section {
  readonly name: string
  readonly bytes: Buffer
}

/** SHF_EXECINSTR */
const executable = 4

/** The sections of a built object of 64 bits, and those of them that are programs. */
export function sectionsOf(file: string): { readonly all: Section[]; readonly code: Section[] } {
  const path = findAsset(file)
  if (path === undefined) throw new Error(`${file} was not built`)
  const elf = readFileSync(path)
  const headers = Number(elf.readBigUInt64LE(40))
  const [size, count, names] = [elf.readUInt16LE(58), elf.readUInt16LE(60), elf.readUInt16LE(62)]
  const header = (index: number) => elf.subarray(headers + index * size, headers + (index + 1) * size)
  const content = (of: Buffer) => {
    const from = Number(of.readBigUInt64LE(24))
    const bits = of.readUInt32LE(4) === 8 // SHT_NOBITS
    return bits ? Buffer.alloc(0) : elf.subarray(from, from + Number(of.readBigUInt64LE(32)))
  }
  const text = content(header(names))
  const all: Section[] = []
  const code: Section[] = []
  for (let index = 0; index < count; index++) {
    const from = header(index).readUInt32LE(0)
    const name = text.toString('latin1', from, text.indexOf(0, from))
    const section = { name, bytes: content(header(index)) }
    all.push(section)
    if (Number(header(index).readBigUInt64LE(8)) & executable && section.bytes.length > 0) code.push(section)
  }
  return { all, code }
}

export const instructionBytes = 8
/** Opcodes (Linux, bpf/standardization/instruction-set.rst). */
export const opcode = {
  call: 0x85,
  exit: 0x95,
  goto: 0x05,
  wide: 0x18,
  atomic32: 0xc3,
  atomic64: 0xdb,
} as const
/** The low three bits of an opcode. */
export const kindOf = { jump: 0x05, jump32: 0x06 } as const
