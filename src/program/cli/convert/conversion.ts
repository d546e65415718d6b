// Converts foreign settings, and reports those that cannot be converted.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pair, Scalar, YAMLMap } from 'yaml'
import { isLiteral } from '../../../config/check-scraping.ts'
import { type LoadedConfig, loadConfig, schema } from '../../../config/index.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalText } from '../../../foundation/lib/terminal-text.ts'
import { leaves } from '../../../foundation/schema/tree.ts'
import { yamlTree } from '../config/yaml-tree.ts'

interface Item {
  readonly value: unknown
  /** Its name in the input. Excludes the value, which may be a secret. */
  readonly origin: string
}

type Setting = { readonly isList: false; readonly item: Item } | { readonly isList: true; items: Item[] }

export interface Converted {
  /** The YAML document. It always loads. */
  readonly text: string
  /** Settings that were not converted, with reason and hint. */
  readonly leftOut: readonly string[]
  /** Settings that need no conversion, and other remarks. */
  readonly notes: readonly string[]
}

/** Keys of a configuration, gathered from the input of another program. */
export class Conversion {
  readonly #command: string
  readonly #settings = new Map<string, Setting>()
  readonly #leftOut = new Set<string>()
  readonly #notes = new Set<string>()
  readonly #variables = new Set<string>()

  constructor(command: string) {
    this.#command = command
  }

  /** Sets a key, in the form of the file. A later value wins. With `refers`, `${VAR}` in it stays a reference. */
  set(key: string, value: unknown, origin: string, refers = false): void {
    this.#settings.set(key, { isList: false, item: { value: this.#taken(value, key, refers), origin } })
  }

  /** Adds an item to the list at a key. */
  add(key: string, value: unknown, origin: string, refers = false): void {
    const setting = this.#settings.get(key)
    const items = setting?.isList ? setting.items : []
    items.push({ value: this.#taken(value, `${key}[${items.length}]`, refers), origin })
    this.#settings.set(key, { isList: true, items })
  }

  /** Adds an entry to the map at a key. */
  put(key: string, name: string, value: unknown, origin: string, refers = false): void {
    const setting = this.#settings.get(key)
    const before = setting === undefined || setting.isList ? {} : (setting.item.value as object)
    const taken = this.#taken(value, `${key}.${name}`, refers)
    this.#settings.set(key, { isList: false, item: { value: { ...before, [name]: taken }, origin } })
  }

  has(key: string): boolean {
    return this.#settings.has(key)
  }

  /** Reports a setting that is not converted: what, why, and what to do. */
  leaveOut(what: string, why: string): void {
    this.#leftOut.add(`${what}: ${why}`)
  }

  note(text: string): void {
    this.#notes.add(text)
  }

  /** Writes the document. Keys that the loader rejects are left out, with its message. */
  finish(): Converted {
    for (;;) {
      const text = this.#document()
      const { problems, warnings } = this.#load(text)
      if (problems.length === 0) {
        for (const warning of warnings) this.note(warning)
        if (this.#variables.size > 0)
          this.note(
            `the configuration uses variables that svc needs, too: ${[...this.#variables].join(', ')}`,
          )
        return { text, leftOut: [...this.#leftOut], notes: [...this.#notes] }
      }
      if (!this.#drop(problems))
        throw new StartError(
          `bug: the written configuration does not load: ${problems[0]!.key}: ${problems[0]!.message}`,
          ExitCode.general,
        )
    }
  }

  #document(): string {
    const given = [...leaves(schema)].flatMap(([key]) => {
      const setting = this.#settings.get(key)
      if (setting === undefined) return []
      const items = setting.isList ? setting.items : [setting.item]
      const origins = [...new Set(items.map(({ origin }) => origin))]
      const more = origins.length > 1 ? ` and ${origins.length - 1} more` : ''
      const value = setting.isList ? items.map(item => item.value) : items[0]!.value
      return [
        {
          key,
          value: quoted(value),
          beside: `${terminalText(origins[0] ?? '', false).slice(0, 100)}${more}`,
        },
      ]
    })
    const head = `# Written by "${this.#command}".\n`
    return given.length === 0 ? `${head}# No differences from the defaults.\n` : `${head}${yamlTree(given)}`
  }

  #load(text: string): LoadedConfig {
    // The name is arbitrary; the folder is private, because the file may contain secrets.
    const folder = mkdtempSync(join(tmpdir(), 'svc-convert-'))
    try {
      const path = join(folder, 'config.yaml')
      writeFileSync(path, text, { mode: 0o600 })
      const env = Object.fromEntries([...this.#variables].map(name => [name, process.env[name] || '1']))
      return loadConfig({ path, explicit: true, env })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  /** Leaves out the keys with problems; false if none of them was set here. */
  #drop(problems: LoadedConfig['problems']): boolean {
    let dropped = false
    for (const [key, setting] of this.#settings) {
      const own = problems.filter(problem => isWithin(problem.key, key) || isWithin(key, problem.key))
      if (own.length === 0) continue
      dropped = true
      const listed = setting.isList ? setting.items : []
      const wrong = new Set<number>()
      for (const problem of own) {
        const at = /^\[(\d+)\]/.exec(rest(problem.key, key))?.[1]
        const item = at === undefined || !setting.isList ? undefined : listed[Number(at)]
        if (item !== undefined) wrong.add(Number(at))
        const origin = item?.origin ?? (setting.isList ? key : setting.item.origin)
        this.leaveOut(origin, `svc does not accept it as ${problem.key}: ${problem.message}`)
      }
      const left = listed.filter((_, i) => !wrong.has(i))
      if (setting.isList && wrong.size > 0 && left.length > 0) setting.items = left
      else this.#settings.delete(key)
    }
    return dropped
  }

  /** The value, escaped so that the loader reads the same text. */
  #taken(value: unknown, key: string, refers: boolean): unknown {
    if (typeof value === 'string') {
      if (isLiteral(key)) return value
      if (!refers) return value.replaceAll('${', () => '$${')
      // Prometheus and Compose read two dollars as one; so does svc before a brace.
      return value.replaceAll(
        /\$?\$\{(?:([A-Za-z_]\w*)(?::[-?][^}]*)?\})?/g,
        (written: string, name?: string) => {
          if (written.startsWith('$$')) return written
          if (name === undefined) return `$${written}`
          this.#variables.add(name)
          return written
        },
      )
    }
    if (Array.isArray(value)) return value.map((each, i) => this.#taken(each, `${key}[${i}]`, refers))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, this.#taken(each, `${key}.${name}`, refers)]),
    )
  }
}

/** Whether a key equals another, or is nested in it. */
function isWithin(key: string, of: string): boolean {
  return of !== '' && (key === of || /^[.[]/.test(rest(key, of)))
}

function rest(text: string, prefix: string): string {
  return text.startsWith(prefix) ? text.slice(prefix.length) : ''
}

/** White space other than blanks, which the YAML writer does not quote and the reader drops. */
const oddSpace = /[^\S ]/

/** The same value, with quotes around texts that would lose white space. */
function quoted(value: unknown): unknown {
  if (typeof value === 'string') return oddSpace.test(value) ? inQuotes(value) : value
  if (Array.isArray(value)) return value.map(quoted)
  if (typeof value !== 'object' || value === null) return value
  const map = new YAMLMap()
  for (const [name, each] of Object.entries(value))
    map.items.push(new Pair(oddSpace.test(name) ? inQuotes(name) : new Scalar(name), quoted(each)))
  return map
}

function inQuotes(text: string): Scalar {
  const scalar = new Scalar(text)
  scalar.type = 'QUOTE_DOUBLE'
  return scalar
}
