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
  /** Not supported by this version. */
  stop: 5,
  /** A signal frame: the registers are in its ucontext_t. */
  unsupported: 6,
  /** Like derefRbp, with rsp. */
  signal: 7,
  /** rbp is certainly a frame pointer. */
  derefRsp: 8,
  /** Where to find the caller's rbp. */
  framePointer: 9,
} as const

/** At CFA + rbpOffset. */
export const rbpRule = {
  kept: 0,
  /** Lost. */
  saved: 1,
  /** At rbp + rbpOffset: functions that align the stack, and save its old value elsewhere. */
  undefined: 2,
  /** It stands at rbp + rbpOffset: functions that align the stack, and keep its old place elsewhere. */
  atRbp: 3,
} as const

/** A rule in memory: u8 cfa, u8 rbp, s16 rbpOffset, s32 cfaOffset, little endian. */
export const ruleBytes = 8

/** The rules of one file. Offsets are file offsets, so they do not depend on the load address. */
export const pageBits = 16

/** Sorted: low 16 bits of the offset at which a rule starts << 16 | index into `rules`. */
export interface UnwindTable {
  /** For each page of the file, the first row that begins in it or later; plus one final entry. */
  readonly rows: Uint32Array
  /** For each page of the file the first row that begins in it or behind it; one more at the end. */
  readonly pages: Uint32Array
  /** `ruleBytes` each. */
  readonly rules: Uint8Array
  /** Offsets with the rule `unsupported`. */
  readonly unsupported: number
}
