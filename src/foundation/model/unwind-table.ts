// How a caller's frame is found from a callee's, as rules by place in a file. The kernel side reads the same numbers.

/** How the canonical frame address (CFA) is found; the return address stands 8 bytes below it. */
export const cfaRule = {
  /** Nothing is known: a frame pointer is tried. */
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
  /** What this version cannot follow. */
  unsupported: 6,
  /** A signal's frame: the registers stand in its ucontext_t. */
  signal: 7,
  /** As derefRbp, of rsp. */
  derefRsp: 8,
  /** rbp holds a frame pointer for sure. */
  framePointer: 9,
} as const

/** What became of the caller's rbp. */
export const rbpRule = {
  kept: 0,
  /** It stands at CFA + rbpOffset. */
  saved: 1,
  /** It is lost. */
  undefined: 2,
  /** It stands at rbp + rbpOffset: functions that align the stack, and keep its old place elsewhere. */
  atRbp: 3,
} as const

/** A rule in memory: u8 cfa, u8 rbp, s16 rbpOffset, s32 cfaOffset, little endian. */
export const ruleBytes = 8

/** Code pages of a table: 64 KiB of the file. */
export const pageBits = 16

/** The rules of one file. Offsets are those in the file, so that nothing depends on where it is loaded. */
export interface UnwindTable {
  /** In order: low 16 bits of where a rule begins to hold << 16 | index into `rules`. */
  readonly rows: Uint32Array
  /** For each page of the file the first row that begins in it or behind it; one more at the end. */
  readonly pages: Uint32Array
  /** `ruleBytes` each. */
  readonly rules: Uint8Array
  /** Places that have the rule `unsupported`. */
  readonly unsupported: number
}
