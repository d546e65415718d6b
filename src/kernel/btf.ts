/**
 * Parses the layouts in the BTF of a compiled BPF object: structures, enumerations and sections of global data. Source:
 * Documentation/bpf/btf.rst of the kernel; ELF-64 as in the System V gABI. For any input, the work is bounded and the
 * outcome is a `Btf` or a `BtfError`.
 */
export interface Btf {
  readonly structs: readonly BtfStruct[]
  readonly enums: readonly BtfEnum[]
  readonly sections: readonly BtfSection[]
}

/** Offsets and sizes are in bytes. Members of anonymous structures and unions are listed with those of their parent. */
export interface BtfStruct {
  readonly name: string
  readonly size: number
  readonly fields: readonly BtfField[]
}

export interface BtfField {
  readonly name: string
  readonly offset: number
  readonly size: number
  readonly isArray: boolean
  readonly isBitField: boolean
}

export interface BtfEnum {
  readonly name: string
  readonly values: readonly { readonly name: string; readonly value: number }[]
}

/** A section of global variables: `.rodata`, `.data`, `.bss`. */
export interface BtfSection {
  readonly name: string
  readonly size: number
  readonly fields: readonly BtfField[]
}

export class BtfError extends Error {
  constructor(cause: string) {
    super(`cannot read BTF: ${cause}`)
    this.name = 'BtfError'
  }
}

// Kinds of include/uapi/linux/btf.h.
const Int = 1
const Ptr = 2
const Arr = 3
const Struct = 4
const Union = 5
const Enum = 6
const Typedef = 8
const Volatile = 9
const Const = 10
const Restrict = 11
const FuncProto = 13
const Var = 14
const Datasec = 15
const Float = 16
const DeclTag = 17
const TypeTag = 18
const Enum64 = 19

/** Bytes after the header of a type: fixed ones, and for each of its `count` elements. */
const fixedBytes: Readonly<Record<number, number>> = { [Int]: 4, [Arr]: 12, [Var]: 4, [DeclTag]: 4 }
const elementBytes: Readonly<Record<number, number>> = {
  [Struct]: 12,
  [Union]: 12,
  [Enum]: 8,
  [FuncProto]: 8,
  [Datasec]: 12,
  [Enum64]: 12,
}

const maxDepth = 32
/** Anonymous members can reference one type many times, so few bytes can describe very many fields. */
const maxFields = 1 << 18
const maxSize = 2 ** 32
const maxName = 1024
const maxSections = 64

interface Type {
  readonly kind: number
  readonly name: string
  /** Size in bytes, or the id of the referenced type. */
  readonly size: number
  readonly flag: boolean
  readonly count: number
  /** Offset after the header. */
  readonly at: number
}

/** Position of a section and its global symbols in the ELF file. */
interface Section {
  readonly name: string
  readonly index: number
  readonly offset: number
  readonly size: number
}

/** Parses a compiled object (`*.bpf.o`). Throws `BtfError` for anything else. */
export function readBtf(object: Uint8Array): Btf {
  try {
    return new Reader(object).read()
  } catch (error) {
    // DataView checks every read: one outside of the file ends here.
    if (error instanceof RangeError) throw new BtfError('the file is cut short or damaged')
    throw error
  }
}

class Reader {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #little: boolean
  readonly #sections = new Map<string, Section>()
  readonly #types: Type[] = [{ kind: 0, name: 'void', size: 0, flag: false, count: 0, at: 0 }]
  #stringsAt = 0
  #stringsEnd = 0
  #fields = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (this.#view.getUint32(0) !== 0x7f454c46 || bytes[4] !== 2) throw new BtfError('not an ELF-64 file')
    this.#little = bytes[5] === 1
  }

  read(): Btf {
    this.#readSections()
    const btf = this.#sections.get('.BTF')
    if (!btf) throw new BtfError('no section .BTF (compile with -g)')
    this.#readTypes(btf)
    const structs: BtfStruct[] = []
    const enums: BtfEnum[] = []
    const sections: BtfSection[] = []
    for (const type of this.#types) {
      if (type.kind === Struct && type.name) {
        structs.push({ name: type.name, size: type.size, fields: this.#fieldsOf(type, 0, 0) })
      } else if (type.kind === Enum && type.name) {
        enums.push({ name: type.name, values: this.#valuesOf(type) })
      } else if (type.kind === Datasec && !/^\.(maps|ksyms|kconfig)$|^[^.]/.test(type.name)) {
        if (sections.length === maxSections) throw new BtfError('too many sections of data')
        sections.push(this.#sectionOf(type))
      }
    }
    return { structs, enums, sections }
  }

  #u32(at: number): number {
    return this.#view.getUint32(at, this.#little)
  }

  /** A 64-bit offset or size. Above 2^53 it is outside of any file, so rounding does not matter. */
  #u64(at: number): number {
    return Number(this.#view.getBigUint64(at, this.#little))
  }

  /** A string that ends with a zero byte before `end`. */
  #string(at: number, end: number): string {
    if (at >= end || end > this.#bytes.length) throw new BtfError('a name is outside of its table')
    const window = this.#bytes.subarray(at, Math.min(end, at + maxName + 1))
    const length = window.indexOf(0)
    if (length < 0) throw new BtfError('a name has no end')
    return String.fromCharCode(...window.subarray(0, length))
  }

  #readSections(): void {
    const table = this.#u64(0x28)
    const count = this.#view.getUint16(0x3c, this.#little)
    const names = this.#view.getUint16(0x3e, this.#little)
    if (this.#view.getUint16(0x3a, this.#little) !== 64) throw new BtfError('odd section headers')
    const strings = this.#sectionAt(table, names, '')
    for (let index = 0; index < count; index++) {
      const at = table + index * 64
      const name = this.#string(strings.offset + this.#u32(at), strings.offset + strings.size)
      this.#sections.set(name, this.#sectionAt(table, index, name))
    }
  }

  #sectionAt(table: number, index: number, name: string): Section {
    const at = table + index * 64
    return { name, index, offset: this.#u64(at + 0x18), size: this.#u64(at + 0x20) }
  }

  #readTypes(btf: Section): void {
    const start = btf.offset
    if (this.#view.getUint16(start, this.#little) !== 0xeb9f) throw new BtfError('no BTF magic')
    if (this.#bytes[start + 2] !== 1) throw new BtfError(`unknown version ${this.#bytes[start + 2]}`)
    const body = start + this.#u32(start + 4)
    let at = body + this.#u32(start + 8)
    const end = at + this.#u32(start + 12)
    const strings = body + this.#u32(start + 16)
    const stringsEnd = strings + this.#u32(start + 20)
    while (at < end) {
      const info = this.#u32(at + 4)
      const kind = (info >>> 24) & 0x1f
      const count = info & 0xffff
      if (kind === 0 || kind > Enum64) throw new BtfError(`unknown kind ${kind}`)
      const name = this.#string(strings + this.#u32(at), stringsEnd)
      this.#types.push({ kind, name, size: this.#u32(at + 8), flag: info >>> 31 === 1, count, at: at + 12 })
      at += 12 + (fixedBytes[kind] ?? 0) + (elementBytes[kind] ?? 0) * count
    }
    this.#stringsAt = strings
    this.#stringsEnd = stringsEnd
  }

  #name(offset: number): string {
    return this.#string(this.#stringsAt + offset, this.#stringsEnd)
  }

  /** Resolves a type through qualifiers and typedefs. */
  #resolve(id: number): Type {
    let type = this.#types[id]
    for (let depth = 0; type && depth < maxDepth; depth++) {
      if (![Typedef, Volatile, Const, Restrict, TypeTag].includes(type.kind)) return type
      type = this.#types[type.size]
    }
    throw new BtfError(type ? `type ${id} refers to itself` : `type ${id} is outside of the table`)
  }

  #sizeOf(id: number, depth = 0): number {
    const type = this.#resolve(id)
    let size = type.size
    if (type.kind === Ptr) size = 8
    else if (type.kind === Arr) {
      if (depth > maxDepth) throw new BtfError(`type ${id} is nested too deep`)
      size = this.#sizeOf(this.#u32(type.at), depth + 1) * this.#u32(type.at + 8)
    } else if (![Int, Struct, Union, Enum, Enum64, Float].includes(type.kind)) size = 0
    if (size > maxSize) throw new BtfError(`type ${id} has ${size} bytes`)
    return size
  }

  #field(name: string, offset: number, id: number, isBitField = false): BtfField {
    if (++this.#fields > maxFields) throw new BtfError('too many fields')
    return { name, offset, size: this.#sizeOf(id), isArray: this.#resolve(id).kind === Arr, isBitField }
  }

  #fieldsOf(type: Type, base: number, depth: number): BtfField[] {
    if (depth > maxDepth) throw new BtfError(`structure ${type.name} is nested too deep`)
    const fields: BtfField[] = []
    for (let i = 0; i < type.count; i++) {
      const at = type.at + i * 12
      const name = this.#name(this.#u32(at))
      const id = this.#u32(at + 4)
      const place = this.#u32(at + 8)
      // With the flag, the upper byte is the width of a bit field, 0 for other members.
      const bits = type.flag ? place & 0xffffff : place
      const isBitField = (type.flag && place >>> 24 !== 0) || bits % 8 !== 0
      const offset = base + Math.floor(bits / 8)
      const member = this.#resolve(id)
      if (!name && (member.kind === Struct || member.kind === Union)) {
        for (const field of this.#fieldsOf(member, offset, depth + 1)) fields.push(field)
      } else if (name) fields.push(this.#field(name, offset, id, isBitField))
      // Count a step for an empty anonymous structure, too.
      if (++this.#fields > maxFields) throw new BtfError('too many fields')
    }
    return fields
  }

  #valuesOf(type: Type): BtfEnum['values'] {
    const values = []
    for (let i = 0; i < type.count; i++) {
      const at = type.at + i * 8
      // Signed, as in btf.h: compilers record the sign only since LLVM 15.
      const value = this.#view.getInt32(at + 4, this.#little)
      values.push({ name: this.#name(this.#u32(at)), value })
    }
    return values
  }

  /** The compiler leaves a section's size and offsets to the linker: take them from the symbol table. */
  #sectionOf(type: Type): BtfSection {
    const section = this.#sections.get(type.name)
    if (!section) throw new BtfError(`no section ${type.name}`)
    const offsets = this.#symbolsOf(section)
    const fields: BtfField[] = []
    for (let i = 0; i < type.count; i++) {
      const at = type.at + i * 12
      const variable = this.#types[this.#u32(at)]
      if (variable?.kind !== Var)
        throw new BtfError(`section ${type.name} contains an entry that is not a variable`)
      const offset = offsets.get(variable.name)
      if (offset === undefined) throw new BtfError(`no symbol for the variable ${variable.name}`)
      fields.push(this.#field(variable.name, offset, variable.size))
    }
    fields.sort((a, b) => a.offset - b.offset)
    return { name: type.name, size: section.size, fields }
  }

  #symbolsOf(section: Section): ReadonlyMap<string, number> {
    const table = this.#sections.get('.symtab')
    const strings = this.#sections.get('.strtab')
    const offsets = new Map<string, number>()
    if (!table || !strings) return offsets
    for (let at = table.offset; at + 24 <= table.offset + table.size; at += 24) {
      if (this.#view.getUint16(at + 6, this.#little) !== section.index) continue
      const name = this.#string(strings.offset + this.#u32(at), strings.offset + strings.size)
      offsets.set(name, this.#u64(at + 8))
    }
    return offsets
  }
}
