// Unwinding rules by offset in a file: how to find the caller's frame. The kernel side uses the same numbers.

/** How to compute the canonical frame address (CFA); the return address is 8 bytes below it. */
export const cfaRule = {
  /** No rule: try the frame pointer. */
  none: 0,
  /** rbp + cfaOffset */
  rbp: 1,
  /** rsp + cfaOffset */
  rsp: 2,
  /** A procedure linkage table: rsp + 8, and 8 more where (pc & 15) >= 11. */
  plt: 3,
  /** *(rbp + low 16 bits of cfaOffset) + high 16 bits, both signed. */
  derefRbp: 4,
  /** The outermost function. */
  stop: 5,
  /** Not supported by this version. */
  unsupported: 6,
  /** A signal frame: the registers are in its ucontext_t. */
  signal: 7,
  /** Like derefRbp, with rsp. */
  derefRsp: 8,
  /** rbp is certainly a frame pointer. */
  framePointer: 9,
} as const

/** Where to find the caller's rbp. */
export const rbpRule = {
  kept: 0,
  /** At CFA + rbpOffset. */
  saved: 1,
  /** Lost. */
  undefined: 2,
  /** At rbp + rbpOffset: functions that align the stack, and save its old value elsewhere. */
  atRbp: 3,
} as const

/** A rule in memory: u8 cfa, u8 rbp, s16 rbpOffset, s32 cfaOffset, little endian. */
export const ruleBytes = 8

/** Code pages of a table: 64 KiB of the file. */
export const pageBits = 16

/** The rules of one file. Offsets are file offsets, so they do not depend on the load address. */
export interface UnwindTable {
  /** Sorted: low 16 bits of the offset at which a rule starts << 16 | index into `rules`. */
  readonly rows: Uint32Array
  /** For each page of the file, the first row that begins in it or later; plus one final entry. */
  readonly pages: Uint32Array
  /** `ruleBytes` each. */
  readonly rules: Uint8Array
  /** Offsets with the rule `unsupported`. */
  readonly unsupported: number
}
