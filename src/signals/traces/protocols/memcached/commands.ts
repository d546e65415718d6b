/** The parts of a command's line that need to be read. */
export const Shape = {
  /** None: the line is skipped. */
  keys: 0,
  /** The size of the data that follows it. */
  store: 1,
  /** Whether it ends in `noreply`. */
  plain: 2,
  /** Flags of one letter. */
  meta: 3,
  metaStore: 4,
  /** The connection is closed instead of a response. */
  quit: 5,
} as const
export type Shape = (typeof Shape)[keyof typeof Shape]

/** The text protocol's commands (doc/protocol.txt). */
export const shapes: ReadonlyMap<string, Shape> = new Map<string, Shape>([
  ['get', Shape.keys],
  ['gets', Shape.keys],
  ['gat', Shape.keys],
  ['gats', Shape.keys],
  ['set', Shape.store],
  ['add', Shape.store],
  ['replace', Shape.store],
  ['append', Shape.store],
  ['prepend', Shape.store],
  ['cas', Shape.store],
  ['delete', Shape.plain],
  ['incr', Shape.plain],
  ['decr', Shape.plain],
  ['touch', Shape.plain],
  ['flush_all', Shape.plain],
  ['verbosity', Shape.plain],
  ['cache_memlimit', Shape.plain],
  ['stats', Shape.plain],
  ['version', Shape.plain],
  ['slabs', Shape.plain],
  ['lru', Shape.plain],
  ['lru_crawler', Shape.plain],
  ['watch', Shape.plain],
  ['shutdown', Shape.plain],
  ['refresh_certs', Shape.plain],
  ['me', Shape.plain],
  ['mn', Shape.plain],
  ['mg', Shape.meta],
  ['md', Shape.meta],
  ['ma', Shape.meta],
  ['ms', Shape.metaStore],
  ['quit', Shape.quit],
])

/** Name of anything that is not a known command. */
export const otherCommand = '_OTHER'

/** The response that a quiet text command omits, kept in its operation's `mark`. */
export const Quiet = {
  no: 0,
  /** `mg` omits a miss. */
  retrieval: 1,
  /** `ms` omits success. */
  store: 2,
  /** `md` and `ma` omit success. Whether they report a miss depends on the version. */
  change: 3,
} as const

/** A number for the bytes of a key or an opaque token, never 0 (FNV-1a). */
export function tokenOf(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  return hash >>> 0 || 1
}
