// Results of a soak in a file, written as they arrive: an interrupted soak continues from them.
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { gitText, unknownFiles } from '../git.ts'
import type { FileResult } from './results.ts'

/** A line of the file: the state of the tree, the beginning of a part, or a result with its time. */
type Line = { tree: string } | { beganMs: number } | { atMs: number; result: FileResult }

export interface SoakProgressOptions {
  /** Whether to repeat what was done before. */
  readonly fresh: boolean
  readonly path?: string
  /** State of the tree: the same text for the same files. */
  readonly tree?: string
}

export class SoakProgress {
  /** Results of earlier parts. */
  readonly results: FileResult[] = []
  /** Duration of earlier parts. */
  readonly spentMs: number = 0

  readonly #path: string

  /** Continues an earlier soak of the same tree, unless `anew`. */
  constructor({ fresh: anew, path = 'build/soak/progress.jsonl', tree = treeState() }: SoakProgressOptions) {
    this.#path = path
    const [head, ...rest] = anew ? [] : readLines(path)
    if (head !== undefined && 'tree' in head && head.tree === tree) {
      // Drops a truncated line.
      writeFileSync(path, [head, ...rest].map(line => `${JSON.stringify(line)}\n`).join(''), { flush: true })
      let beganMs = 0
      let atMs = 0
      for (const line of rest) {
        if ('beganMs' in line) {
          this.spentMs += atMs - beganMs
          beganMs = atMs = line.beganMs
        } else if ('result' in line) {
          atMs = line.atMs
          this.results.push(line.result)
        }
      }
      this.spentMs += atMs - beganMs
    } else {
      mkdirSync(dirname(path), { recursive: true })
      rmSync(path, { force: true })
      this.#write({ tree })
    }
    this.#write({ beganMs: Date.now() })
  }

  add(result: FileResult): void {
    this.#write({ atMs: Date.now(), result })
  }

  /** All files have results: the next soak starts from the beginning. */
  end(): void {
    rmSync(this.#path)
  }

  #write(line: Line): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { flush: true })
  }
}

/** The lines up to the first unreadable one: an interruption may have truncated the last. */
function readLines(path: string): Line[] {
  const lines: Line[] = []
  if (!existsSync(path)) return lines
  for (const text of readFileSync(path, 'utf8').split('\n'))
    try {
      lines.push(JSON.parse(text) as Line)
    } catch {
      break
    }
  return lines
}

function treeState(): string {
  const hash = createHash('sha256').update(gitText('.', 'rev-parse', 'HEAD'))
  hash.update(gitText('.', 'diff', 'HEAD'))
  for (const file of unknownFiles('.')) {
    hash.update(file)
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile()) hash.update(readFileSync(file))
  }
  return hash.digest('hex')
}
