const words = [
  'ABORT',
  'ALTER',
  'ANALYZE',
  'BACKUP',
  'BEGIN',
  'BINLOG',
  'CALL',
  'CHANGE',
  'CHECK',
  'CHECKPOINT',
  'CHECKSUM',
  'CLOSE',
  'CLUSTER',
  'COMMENT',
  'COMMIT',
  'CONCURRENTLY',
  'COPY',
  'CREATE',
  'DATABASE',
  'DEALLOCATE',
  'DECLARE',
  'DELAYED',
  'DELETE',
  'DESC',
  'DESCRIBE',
  'DISCARD',
  'DISTINCT',
  'DO',
  'DROP',
  'END',
  'EVENT',
  'EXCEPT',
  'EXEC',
  'EXECUTE',
  'EXISTS',
  'EXPLAIN',
  'EXTENSION',
  'FETCH',
  'FLUSH',
  'FOR',
  'FOREIGN',
  'FREEZE',
  'FROM',
  'FULL',
  'FUNCTION',
  'GET',
  'GLOBAL',
  'GRANT',
  'GROUP',
  'HANDLER',
  'HAVING',
  'HELP',
  'HIGH_PRIORITY',
  'IF',
  'IGNORE',
  'IMPORT',
  'IN',
  'INDEX',
  'INSERT',
  'INSTALL',
  'INTERSECT',
  'INTO',
  'JOIN',
  'KILL',
  'LATERAL',
  'LIMIT',
  'LISTEN',
  'LOAD',
  'LOCAL',
  'LOCK',
  'LOW_PRIORITY',
  'MATERIALIZED',
  'MERGE',
  'MOVE',
  'NOT',
  'NOTIFY',
  'OFFSET',
  'ONLY',
  'OPTIMIZE',
  'OR',
  'ORDER',
  'OVERWRITE',
  'PREPARE',
  'PROCEDURE',
  'PURGE',
  'QUICK',
  'REASSIGN',
  'RECURSIVE',
  'REFRESH',
  'REINDEX',
  'RELEASE',
  'RENAME',
  'REPAIR',
  'REPLACE',
  'RESET',
  'RESIGNAL',
  'RESTART',
  'RETURNING',
  'REVOKE',
  'ROLLBACK',
  'SAVEPOINT',
  'SCHEMA',
  'SECURITY',
  'SELECT',
  'SEQUENCE',
  'SET',
  'SHOW',
  'SHUTDOWN',
  'SIGNAL',
  'START',
  'STOP',
  'STRAIGHT_JOIN',
  'TABLE',
  'TABLES',
  'TEMP',
  'TEMPORARY',
  'TRIGGER',
  'TRUNCATE',
  'TYPE',
  'UNINSTALL',
  'UNION',
  'UNIQUE',
  'UNLISTEN',
  'UNLOCK',
  'UNLOGGED',
  'UPDATE',
  'USE',
  'USING',
  'VACUUM',
  'VALUES',
  'VERBOSE',
  'VIEW',
  'WHERE',
  'WINDOW',
  'WITH',
  'XA',
] as const

/** A word with a meaning for the statement reader. */
export type Keyword = (typeof words)[number]

const longest = Math.max(...words.map(word => word.length))
const slots = 512
const table = new Array<Keyword | undefined>(slots).fill(undefined)
for (const word of words) {
  let slot = 0x811c
  for (let i = 0; i < word.length; i++) slot = step(slot, word.charCodeAt(i))
  slot = slotOf(slot)
  while (table[slot] !== undefined) slot = (slot + 1) % slots
  table[slot] = word
}

/** The keyword in `bytes[start, end)`, in any case; undefined for any other word. */
export function keywordOf(bytes: Buffer, start: number, end: number): Keyword | undefined {
  if (end - start > longest || end - start < 2) return undefined
  let hash = 0x811c
  for (let i = start; i < end; i++) hash = step(hash, upper(bytes[i]!))
  for (let slot = slotOf(hash); ; slot = (slot + 1) % slots) {
    const word = table[slot]
    if (word === undefined || spells(word, bytes, start, end)) return word
  }
}

function spells(word: string, bytes: Buffer, start: number, end: number): boolean {
  if (word.length !== end - start) return false
  for (let i = 0; i < word.length; i++) if (word.charCodeAt(i) !== upper(bytes[start + i]!)) return false
  return true
}

function step(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, 0x01000193)
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 15)) & (slots - 1)
}

function upper(byte: number): number {
  return byte >= 0x61 && byte <= 0x7a ? byte & 0xdf : byte
}
