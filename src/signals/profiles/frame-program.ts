import { cfaRule, rbpRule } from '../../foundation/model/unwind-table.ts'
import type { FrameReader } from './frame-reader.ts'
import type { UnwindRows } from './unwind-rows.ts'

/** DWARF register numbers (System V ABI, x86-64 supplement, 3.6.2). */
const rbp = 6
const rsp = 7
const returnAddress = 16

/** Instructions (DWARF 5, 7.24). The first three have an operand in their low 6 bits. */
const op = {
  advance: 0x40,
  offset: 0x80,
  restore: 0xc0,
  nop: 0x00,
  setPlace: 0x01,
  advance1: 0x02,
  advance2: 0x03,
  advance4: 0x04,
  offsetExtended: 0x05,
  restoreExtended: 0x06,
  undefined: 0x07,
  sameValue: 0x08,
  register: 0x09,
  rememberState: 0x0a,
  restoreState: 0x0b,
  cfa: 0x0c,
  cfaRegister: 0x0d,
  cfaOffset: 0x0e,
  cfaExpression: 0x0f,
  expression: 0x10,
  offsetSigned: 0x11,
  cfaSigned: 0x12,
  cfaOffsetSigned: 0x13,
  valueOffset: 0x14,
  valueOffsetSigned: 0x15,
  valueExpression: 0x16,
  gnuArgumentsSize: 0x2e,
  gnuNegativeOffset: 0x2f,
} as const

/** Operations of expressions (DWARF 5, 7.7.1). */
const operation = {
  deref: 0x06,
  const1u: 0x08,
  plus: 0x22,
  plusConstant: 0x23,
  literal0: 0x30,
  breg0: 0x70,
} as const

/** rsp + 8 + ((pc & 15) >= 11) << 3: expression of a lazy procedure linkage table (GNU binutils, elf_x86_64). */
const pltExpression = [0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22] as const

/**
 * Offsets of rsp and the return address in `struct rt_sigframe` (arch/x86/include/asm/sigframe.h), less the return
 * address.
 */
const signalStackPointer = 160
const signalReturnAddress = 168

/** State of the return address. */
const ra = { usual: 0, undefined: 1, signal: 2, elsewhere: 3 } as const

/** Fields of a state, stored as numbers so that it can be saved and restored. */
const cfaKind = 0
const cfaValue = 1
const rbpKind = 2
const rbpValue = 3
const raKind = 4
export const stateFields = 5
const mostRemembered = 64
const addressBytes = 8

/** Common entry of functions of one kind. */
export interface CommonEntry {
  readonly codeFactor: number
  readonly dataFactor: number
  readonly pointerEncoding: number
  readonly hasData: boolean
  readonly isSignal: boolean
  /** State after its instructions. */
  readonly state: Int32Array
}

/**
 * Executes call frame instructions (DWARF 5, 6.4.2) for the three registers needed to unwind: the CFA, rbp and the
 * return address. Unsupported instructions result in the rule `unsupported`.
 */
export class FrameProgram {
  readonly #reader: FrameReader
  readonly #rows: UnwindRows
  readonly #state = new Int32Array(stateFields)
  readonly #remembered = new Int32Array(stateFields * mostRemembered)
  #depth = 0
  #common!: CommonEntry
  #place = 0
  #end = 0
  #bias = 0

  constructor(reader: FrameReader, rows: UnwindRows) {
    this.#reader = reader
    this.#rows = rows
  }

  /** Executes up to the reader's end, and stores the resulting state in `common.state`. */
  runCommon(common: CommonEntry): void {
    this.#state.set([cfaRule.none, 0, rbpRule.kept, 0, ra.elsewhere])
    // It has no address, so an instruction that advances ends it.
    this.#run(common, 0, 0)
    common.state.set(this.#state)
  }

  /** Executes up to the reader's end for a function at these addresses, which are its file offsets plus `bias`. */
  runFunction(common: CommonEntry, start: number, end: number, bias: number): void {
    this.#state.set(common.state)
    this.#bias = bias
    this.#rows.begin(start - bias, end - bias)
    this.#run(common, start, end)
    if (this.#place >= end) return
    if (this.#reader.failed) this.#rows.add(this.#place - bias, cfaRule.unsupported, 0, 0)
    else this.#add()
  }

  #run(common: CommonEntry, start: number, end: number): void {
    const reader = this.#reader
    this.#common = common
    this.#depth = 0
    this.#place = start
    this.#end = end
    while (reader.at < reader.end) {
      const instruction = reader.u8()
      const operand = instruction & 63
      switch (instruction & 0xc0) {
        case op.advance:
          this.#advance(operand)
          break
        case op.offset:
          this.#saved(operand, reader.uleb() * common.dataFactor)
          break
        case op.restore:
          this.#restored(operand)
          break
        default:
          this.#step(instruction)
      }
    }
  }

  #step(instruction: number): void {
    const reader = this.#reader
    const { dataFactor, pointerEncoding } = this.#common
    switch (instruction) {
      case op.nop:
        break
      case op.setPlace:
        this.#moveTo(reader.pointer(pointerEncoding))
        break
      case op.advance1:
        this.#advance(reader.u8())
        break
      case op.advance2:
        this.#advance(reader.u16())
        break
      case op.advance4:
        this.#advance(reader.u32())
        break
      case op.offsetExtended:
        this.#saved(reader.uleb(), reader.uleb() * dataFactor)
        break
      case op.offsetSigned:
        this.#saved(reader.uleb(), reader.sleb() * dataFactor)
        break
      case op.gnuNegativeOffset:
        this.#saved(reader.uleb(), -reader.uleb() * dataFactor)
        break
      case op.restoreExtended:
        this.#restored(reader.uleb())
        break
      case op.undefined:
        this.#changed(reader.uleb(), rbpRule.undefined, ra.undefined)
        break
      case op.sameValue:
        this.#changed(reader.uleb(), rbpRule.kept, ra.elsewhere)
        break
      case op.register:
      case op.valueOffset:
      case op.valueOffsetSigned:
        this.#changed(reader.uleb(), rbpRule.undefined, ra.elsewhere)
        reader.uleb()
        break
      case op.rememberState:
        this.#remember()
        break
      case op.restoreState:
        this.#recall()
        break
      default:
        this.#stepCfa(instruction)
        break
    }
  }

  #stepCfa(instruction: number): void {
    const reader = this.#reader
    const { dataFactor } = this.#common
    switch (instruction) {
      case op.cfa:
        this.#setCfaRegister(reader.uleb())
        this.#setCfaOffset(reader.uleb())
        break
      case op.cfaSigned:
        this.#setCfaRegister(reader.uleb())
        this.#setCfaOffset(reader.sleb() * dataFactor)
        break
      case op.cfaRegister:
        this.#leaveExpression()
        this.#setCfaRegister(reader.uleb())
        break
      case op.cfaOffset:
        this.#leaveExpression()
        this.#setCfaOffset(reader.uleb())
        break
      case op.cfaOffsetSigned:
        this.#leaveExpression()
        this.#setCfaOffset(reader.sleb() * dataFactor)
        break
      case op.cfaExpression:
        this.#setCfaExpression(reader.uleb())
        break
      case op.expression:
        this.#setExpression(reader.uleb(), reader.uleb())
        break
      case op.valueExpression:
        this.#changed(reader.uleb(), rbpRule.undefined, ra.elsewhere)
        reader.skip(reader.uleb())
        break
      case op.gnuArgumentsSize:
        reader.uleb()
        break
      default:
        // The length of its operands is unknown.
        reader.fail()
    }
  }

  #advance(steps: number): void {
    this.#moveTo(this.#place + steps * this.#common.codeFactor)
  }

  /** Ends the range of the current state at this address. */
  #moveTo(address: number): void {
    if (address < this.#place) this.#reader.fail()
    else if (this.#place < this.#end) this.#add()
    this.#place = Math.max(address, this.#place)
    if (this.#place >= this.#end) this.#reader.at = this.#reader.end
  }

  #saved(register: number, offset: number): void {
    if (register === rbp) {
      this.#state[rbpKind] = is16(offset) ? rbpRule.saved : rbpRule.undefined
      this.#state[rbpValue] = is16(offset) ? offset : 0
    }
    if (register === returnAddress) this.#state[raKind] = offset === -8 ? ra.usual : ra.elsewhere
  }

  #restored(register: number): void {
    const { state } = this.#common
    if (register === rbp) {
      this.#state[rbpKind] = state[rbpKind]!
      this.#state[rbpValue] = state[rbpValue]!
    }
    if (register === returnAddress) this.#state[raKind] = state[raKind]!
  }

  #changed(register: number, ofRbp: number, ofReturnAddress: number): void {
    if (register === rbp) {
      this.#state[rbpKind] = ofRbp
      this.#state[rbpValue] = 0
    }
    if (register === returnAddress) this.#state[raKind] = ofReturnAddress
  }

  #remember(): void {
    if (this.#depth === mostRemembered) this.#reader.fail()
    else this.#remembered.set(this.#state, stateFields * this.#depth++)
  }

  #recall(): void {
    if (this.#depth === 0) {
      this.#reader.fail()
      return
    }
    const start = stateFields * --this.#depth
    for (let field = 0; field < stateFields; field++) this.#state[field] = this.#remembered[start + field]!
  }

  #setCfaRegister(register: number): void {
    this.#state[cfaKind] =
      register === rsp ? cfaRule.rsp : register === rbp ? cfaRule.rbp : cfaRule.unsupported
  }

  #setCfaOffset(offset: number): void {
    if (offset !== (offset | 0)) this.#reader.fail()
    else this.#state[cfaValue] = offset
  }

  /** Register and offset can be changed separately only if the CFA is not an expression. */
  #leaveExpression(): void {
    const kind = this.#state[cfaKind]
    if (kind === cfaRule.plt || kind === cfaRule.derefRbp || kind === cfaRule.derefRsp) this.#reader.fail()
  }

  #setCfa(kind: number, value: number): void {
    this.#state[cfaKind] = kind
    this.#state[cfaValue] = value
  }

  /** Supports a register, a word in memory at one, each plus a constant; and the PLT expression. */
  #setCfaExpression(length: number): void {
    const reader = this.#reader
    const end = reader.at + length
    if (end > reader.end) {
      reader.fail()
      return
    }
    this.#setCfa(cfaRule.unsupported, 0)
    if (length === pltExpression.length && this.#isPlt()) this.#setCfa(cfaRule.plt, 0)
    else this.#setCfaLoad(end)
    reader.at = end
  }

  #setCfaLoad(end: number): void {
    const reader = this.#reader
    const register = reader.u8() - operation.breg0
    const offset = reader.sleb()
    if (register !== rbp && register !== rsp) return
    if (reader.at === end) {
      this.#setCfaRegister(register)
      this.#setCfaOffset(offset)
      return
    }
    if (reader.u8() !== operation.deref) return
    const added = this.#added(end)
    if (reader.at !== end || !is16(offset) || !is16(added)) return
    this.#setCfa(register === rbp ? cfaRule.derefRbp : cfaRule.derefRsp, (offset & 0xffff) | (added << 16))
  }

  /** Constant added by the rest of an expression; NaN if it does anything else. */
  #added(end: number): number {
    const reader = this.#reader
    if (reader.at === end) return 0
    const first = reader.u8()
    if (first === operation.plusConstant) return reader.uleb()
    const literal = first - operation.literal0
    const constant =
      first === operation.const1u ? reader.u8() : literal >= 0 && literal < 32 ? literal : Number.NaN
    return reader.u8() === operation.plus ? constant : Number.NaN
  }

  #isPlt(): boolean {
    const reader = this.#reader
    const start = reader.at
    const isPlt = pltExpression.every(byte => reader.u8() === byte)
    reader.at = start
    return isPlt
  }

  #setExpression(register: number, length: number): void {
    const reader = this.#reader
    const end = reader.at + length
    if (end > reader.end) {
      reader.fail()
      return
    }
    const from = reader.u8() - operation.breg0
    const offset = reader.sleb()
    const isWhole = reader.at === end
    if (register === rbp && from === rbp && isWhole && is16(offset)) {
      this.#state[rbpKind] = rbpRule.atRbp
      this.#state[rbpValue] = offset
    } else {
      const isOfSignal = from === rsp && offset === signalReturnAddress && isWhole
      this.#changed(register, rbpRule.undefined, isOfSignal ? ra.signal : ra.elsewhere)
    }
    reader.at = end
  }

  /** Adds a row with the current state. */
  #add(): void {
    const state = this.#state
    const place = this.#place - this.#bias
    const rule = this.#rule()
    const isPlain = rule !== cfaRule.none && rule !== cfaRule.stop && rule !== cfaRule.unsupported
    if (isPlain && rule !== cfaRule.signal) this.#rows.add(place, rule, state[cfaValue]!, this.#rbpRule(rule))
    else this.#rows.add(place, rule, 0, 0)
  }

  /**
   * In functions that align the stack, GCC does not mark that rbp is restored, only that the function is about to
   * return.
   */
  #rbpRule(cfa: number): number {
    const kind = this.#state[rbpKind]!
    const returns = cfa === cfaRule.rsp && this.#state[cfaValue] === addressBytes
    if (kind === rbpRule.atRbp && returns) return rbpRule.kept
    return kind | ((this.#state[rbpValue]! & 0xffff) << 8)
  }

  #rule(): number {
    const kind = this.#state[cfaKind]!
    switch (this.#state[raKind]) {
      case ra.usual:
        return kind
      case ra.undefined:
        return cfaRule.stop
      case ra.signal: {
        const isSignal = this.#common.isSignal && kind === cfaRule.derefRsp
        return isSignal && this.#state[cfaValue] === signalStackPointer ? cfaRule.signal : cfaRule.unsupported
      }
      default:
        return kind === cfaRule.none ? kind : cfaRule.unsupported
    }
  }
}

function is16(value: number): boolean {
  return value >= -0x8000 && value <= 0x7fff
}
