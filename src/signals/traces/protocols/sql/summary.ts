import { ByteRange } from '../../../../foundation/lib/byte-range.ts'
import type { Keyword } from './keywords.ts'
import { copyToken, type SqlLexer, Token } from './lexer.ts'

/** Maximum bytes of `db.query.summary`. */
export const maxSummaryBytes = 255

/** Kind of a target. */
export type TargetKind = 'none' | 'collection' | 'procedure' | 'database'

/** Words that a statement may begin with. Any other word has no known meaning, and may be anything. */
const verbs = new Set<Keyword>([
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
  'COPY',
  'CREATE',
  'DEALLOCATE',
  'DECLARE',
  'DELETE',
  'DESC',
  'DESCRIBE',
  'DISCARD',
  'DO',
  'DROP',
  'END',
  'EXEC',
  'EXECUTE',
  'EXPLAIN',
  'FETCH',
  'FLUSH',
  'GET',
  'GRANT',
  'HANDLER',
  'HELP',
  'IMPORT',
  'INSERT',
  'INSTALL',
  'KILL',
  'LISTEN',
  'LOAD',
  'LOCK',
  'MERGE',
  'MOVE',
  'NOTIFY',
  'OPTIMIZE',
  'PREPARE',
  'PURGE',
  'REASSIGN',
  'REFRESH',
  'REINDEX',
  'RELEASE',
  'RENAME',
  'REPAIR',
  'REPLACE',
  'RESET',
  'RESIGNAL',
  'RESTART',
  'REVOKE',
  'ROLLBACK',
  'SAVEPOINT',
  'SECURITY',
  'SELECT',
  'SET',
  'SHOW',
  'SHUTDOWN',
  'SIGNAL',
  'START',
  'STOP',
  'TABLE',
  'TRUNCATE',
  'UNINSTALL',
  'UNLISTEN',
  'UNLOCK',
  'UPDATE',
  'USE',
  'VACUUM',
  'VALUES',
  'XA',
])
/** Statements whose target comes next, apart from the words of `beforeTarget`. */
const directTargets = new Map<Keyword, TargetKind>([
  ['ANALYZE', 'collection'],
  ['CALL', 'procedure'],
  ['CLUSTER', 'collection'],
  ['COPY', 'collection'],
  ['DESC', 'collection'],
  ['DESCRIBE', 'collection'],
  ['EXEC', 'procedure'],
  ['EXECUTE', 'none'],
  ['INSERT', 'collection'],
  ['LOCK', 'collection'],
  ['MERGE', 'collection'],
  ['REFRESH', 'collection'],
  ['REPLACE', 'collection'],
  ['TRUNCATE', 'collection'],
  ['UPDATE', 'collection'],
  ['USE', 'database'],
  ['VACUUM', 'collection'],
])
/** In these, commas are followed by further targets. */
const manyTargets = new Set<Keyword>(['UPDATE', 'TRUNCATE', 'LOCK', 'VACUUM', 'ANALYZE'])
/** Their FROM is followed by tables, rather than a file or a cursor. */
const namesTables = new Set<Keyword>(['DELETE', 'SELECT', 'UPDATE'])
/** Statements whose second word is part of the operation. */
const twoWords = new Set<Keyword>(['CREATE', 'DROP', 'ALTER', 'START', 'SHOW'])
/** Between CREATE and the kind of object. */
const beforeKind = new Set<Keyword>([
  'FOREIGN',
  'FULL',
  'GLOBAL',
  'LOCAL',
  'MATERIALIZED',
  'OR',
  'RECURSIVE',
  'REPLACE',
  'TEMP',
  'TEMPORARY',
  'UNIQUE',
  'UNLOGGED',
])
const kinds = new Map<Keyword, TargetKind>([
  ['DATABASE', 'database'],
  ['EVENT', 'none'],
  ['EXTENSION', 'none'],
  ['FUNCTION', 'procedure'],
  ['INDEX', 'none'],
  ['PROCEDURE', 'procedure'],
  ['SCHEMA', 'database'],
  ['SEQUENCE', 'none'],
  ['TABLE', 'collection'],
  ['TRIGGER', 'none'],
  ['TYPE', 'none'],
  ['VIEW', 'collection'],
])
/** A program follows. */
const programs = new Set<Keyword>(['EVENT', 'FUNCTION', 'PROCEDURE', 'TRIGGER'])
/** Between an operation and its target. */
const beforeTarget = new Set<Keyword>([
  'ANALYZE',
  'CONCURRENTLY',
  'DELAYED',
  'EXISTS',
  'FREEZE',
  'FULL',
  'HIGH_PRIORITY',
  'IF',
  'IGNORE',
  'INTO',
  'LATERAL',
  'LOCAL',
  'LOW_PRIORITY',
  'MATERIALIZED',
  'NOT',
  'ONLY',
  'OVERWRITE',
  'QUICK',
  'TABLE',
  'TABLES',
  'VERBOSE',
  'VIEW',
])
/** After these, a comma is not followed by a table. */
const endsTables = new Set<Keyword>([
  'EXCEPT',
  'FETCH',
  'FOR',
  'GROUP',
  'HAVING',
  'INTERSECT',
  'LIMIT',
  'OFFSET',
  'ORDER',
  'RETURNING',
  'SET',
  'UNION',
  'VALUES',
  'WHERE',
  'WINDOW',
])
/** Within a statement these begin an operation if a parenthesis precedes them. */
const inner = new Set<Keyword>(['DELETE', 'INSERT', 'MERGE', 'UPDATE'])

const maxDepth = 64
/** State of a depth of parentheses: FROM is followed by tables, a comma is followed by one, a JOIN was seen. */
const takesFrom = 1
const listsTables = 2
const hasJoin = 4

/**
 * The operations of one statement and their targets, in order of occurrence (database conventions 1.44, "Generating a
 * summary of the query").
 */
export class SqlSummary {
  readonly bytes: Buffer = Buffer.alloc(maxSummaryBytes)
  length = 0
  operations = 0
  targets = 0
  /** The first of each, as ranges of `bytes`. */
  readonly operation: ByteRange = new ByteRange()
  readonly target: ByteRange = new ByteRange()
  targetKind: TargetKind = 'none'
  /** Whether it is a USE statement. */
  get uses(): boolean {
    return this.#main === 'USE'
  }

  #full = false
  #depth = 0
  readonly #flags = new Uint8Array(maxDepth)
  #last: Token = Token.end
  #lastKeyword: Keyword | undefined
  /** The statement's first operation. */
  #main: Keyword | undefined
  /** The first word is still to come. */
  #opening = true
  /** It may contain operations: WITH, EXPLAIN. */
  #nests = false
  /** The newest word was EXPLAIN, apart from its options. */
  #explains = false
  /** Parentheses around options of EXPLAIN. */
  #options = 0
  /** The second word of an operation is still to come. */
  #wantsKind = false
  #wantsTarget = false
  #wantedKind: TargetKind = 'none'
  /** A target's name has begun. */
  #naming = false
  /** The rest is ignored. */
  #over = false

  clear(): void {
    this.length = 0
    this.operations = 0
    this.targets = 0
    this.operation.clear()
    this.target.clear()
    this.targetKind = 'none'
    this.#full = false
    this.#depth = 0
    this.#flags[0] = 0
    this.#last = Token.end
    this.#lastKeyword = undefined
    this.#main = undefined
    this.#opening = true
    this.#nests = false
    this.#explains = false
    this.#options = 0
    this.#wantsKind = false
    this.#wantsTarget = false
    this.#naming = false
    this.#over = false
  }

  /** Adds the lexer's newest token. */
  add(token: Token, lexer: SqlLexer): void {
    if (this.#over) return
    if (!this.#naming || !this.#continueName(token, lexer)) {
      this.#naming = false
      if (this.#options > 0) this.#skipOption(token)
      else if (token === Token.word) this.#addWord(lexer)
      else this.#addOther(token, lexer)
    }
    this.#last = token
    this.#lastKeyword = lexer.keyword
  }

  #addWord(lexer: SqlLexer): void {
    const { keyword } = lexer
    if (this.#opening) this.#open(lexer)
    else if (this.#wantsKind) this.#addKind(lexer)
    else if (keyword === 'SELECT') this.#addOperation(lexer)
    else if (this.#wantsTarget && !endsTables.has(keyword!)) {
      if (!beforeTarget.has(keyword!) && keyword !== 'FROM') this.#addTarget(lexer)
    } else if (keyword !== undefined) this.#addKeyword(keyword, lexer)
  }

  /** The first word of a statement, apart from the options of EXPLAIN. */
  #open(lexer: SqlLexer): void {
    const { keyword } = lexer
    if (keyword === 'WITH') {
      this.#opening = false
      this.#nests = true
    } else if (keyword === undefined || !verbs.has(keyword)) {
      if (!this.#explains || !beforeTarget.has(keyword!)) this.#over = true
    } else if (!this.#explains || keyword !== 'ANALYZE') {
      this.#addOperation(lexer)
    }
  }

  #addOperation(lexer: SqlLexer): void {
    const { keyword } = lexer
    this.#wantsTarget = false
    this.#explains = keyword === 'EXPLAIN'
    this.#opening = this.#explains
    this.#nests ||= this.#explains
    this.#main ??= keyword
    if (this.operations === 0) this.operation.set(this.length, this.length + lexer.end - lexer.start)
    this.operations++
    this.#append(lexer)
    if (keyword === undefined) return
    const kind = directTargets.get(keyword)
    if (kind !== undefined) this.#want(kind)
    this.#wantsKind = twoWords.has(keyword)
    const flags = namesTables.has(keyword) ? takesFrom : 0
    this.#flags[this.#depth] = manyTargets.has(keyword) ? flags | listsTables : flags
  }

  /** The word after CREATE, SHOW and similar ones. */
  #addKind(lexer: SqlLexer): void {
    const { keyword } = lexer
    if (keyword !== undefined && beforeKind.has(keyword)) return
    this.#wantsKind = false
    this.#append(lexer)
    if (this.operations === 1) this.operation.end = this.length
    const kind = keyword === undefined ? undefined : kinds.get(keyword)
    if (kind === undefined || this.#main === 'SHOW' || this.#main === 'START') {
      this.#over = true
      return
    }
    this.#want(kind)
    if (this.#main === 'DROP') this.#flags[this.#depth]! |= listsTables
    else if (this.#main === 'CREATE' && programs.has(keyword!)) this.#wantedKind = 'procedure'
  }

  #addKeyword(keyword: Keyword, lexer: SqlLexer): void {
    const depth = this.#depth
    const flags = this.#flags[depth]!
    if (endsTables.has(keyword)) {
      this.#wantsTarget = false
      this.#flags[depth] = flags & ~listsTables
    } else if (keyword === 'FROM') {
      // EXTRACT(year FROM x) is no list of tables, and neither is IS DISTINCT FROM x.
      if ((flags & takesFrom) === 0 || this.#lastKeyword === 'DISTINCT') return
      this.#flags[depth] = flags | listsTables
      this.#want('collection')
    } else if (keyword === 'JOIN' || keyword === 'STRAIGHT_JOIN') {
      this.#flags[depth] = flags | hasJoin
      this.#want('collection')
    } else if (keyword === 'INTO') {
      if (this.#main === 'LOAD') this.#want('collection')
    } else if (keyword === 'USING') {
      if ((this.#main !== 'DELETE' && this.#main !== 'MERGE') || (flags & hasJoin) !== 0) return
      this.#flags[depth] = flags | listsTables
      this.#want('collection')
    } else if (this.#nests && inner.has(keyword) && this.#behindParenthesis()) {
      this.#addOperation(lexer)
    }
  }

  #behindParenthesis(): boolean {
    return this.#last === Token.open || this.#last === Token.close
  }

  #addOther(token: Token, lexer: SqlLexer): void {
    switch (token) {
      case Token.open:
        if (this.#opening && this.#explains) this.#options = 1
        else this.#descend()
        break
      case Token.close:
        if (this.#depth > 0) this.#depth--
        this.#wantsTarget = false
        break
      case Token.comma:
        this.#wantsTarget = false
        if ((this.#flags[this.#depth]! & listsTables) !== 0) this.#want('collection')
        break
      case Token.name:
        if (this.#wantsTarget) this.#addTarget(lexer)
        break
      default:
        this.#wantsTarget = false
    }
  }

  /** FROM (a, b) lists tables as FROM a, b does. */
  #descend(): void {
    const depth = this.#depth
    const listing = this.#wantsTarget && (this.#flags[depth]! & (listsTables | hasJoin)) !== 0
    if (depth < maxDepth - 1) this.#depth++
    this.#flags[this.#depth] = listing ? listsTables : 0
    if (!listing) this.#wantsTarget = false
  }

  #skipOption(token: Token): void {
    if (token === Token.open) this.#options++
    else if (token === Token.close) this.#options--
  }

  #want(kind: TargetKind): void {
    this.#wantsTarget = true
    this.#wantedKind = kind
  }

  #addTarget(lexer: SqlLexer): void {
    this.#wantsTarget = false
    this.#naming = true
    const from = this.length === 0 ? 0 : this.length + 1
    this.#append(lexer)
    if (this.targets === 0) {
      this.target.set(from, this.length)
      this.targetKind = this.#wantedKind
    }
    this.targets++
    if (this.#main === 'CREATE' && this.#wantedKind === 'procedure') this.#over = true
  }

  /** Takes tokens that continue a name: `.table` after a schema. */
  #continueName(token: Token, lexer: SqlLexer): boolean {
    const part = (token === Token.word || token === Token.name) && this.#last === Token.dot
    if (token !== Token.dot && !part) return false
    if (this.#full || this.length + lexer.end - lexer.start > maxSummaryBytes) {
      this.#full = true
      return true
    }
    this.#copy(lexer)
    if (this.targets === 1) this.target.end = this.length
    return true
  }

  #append(lexer: SqlLexer): void {
    const blank = this.length === 0 ? 0 : 1
    if (this.#full || this.length + blank + lexer.end - lexer.start > maxSummaryBytes) {
      this.#full = true
      return
    }
    if (blank === 1) this.bytes[this.length++] = 0x20
    this.#copy(lexer)
  }

  #copy(lexer: SqlLexer): void {
    this.length = copyToken(lexer, this.bytes, this.length)
  }
}
