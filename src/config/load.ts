import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Content, readContent } from '../foundation/lib/file-content.ts'
import { hideOf } from '../foundation/schema/collections.ts'
import {
  formatProblems,
  type NamedFile,
  type Problem,
  problemAt,
  problemWith,
  type Report,
  reportInto,
} from '../foundation/schema/problem.ts'
import { build, type Key, leaves, readBranch, readKey, type Settings } from '../foundation/schema/tree.ts'
import { fileSource, lineAndColumn, looseScalar } from '../foundation/schema/value.ts'
import { parseYaml, type YamlOptions } from '../foundation/schema/yaml-place.ts'
import { checkFiles } from './check-files.ts'
import { checkScraping, isLiteral } from './check-scraping.ts'
import { effective, type Sourced, type SourceKind } from './effective.ts'
import { type Environment, readEnvironment } from './environment.ts'
import { readOtelEnvironment } from './otel-environment.ts'
import { type Config, schema } from './schema.ts'
import { checkTwins, type Runtime, thisRuntime, validate } from './validate.ts'

const systemFile = '/etc/svc/config.yaml'

/** Source of a key's value. Keys that are not listed have their default. */
export interface Origin {
  readonly source: SourceKind
  /** The file, or the name of the variable or flag. */
  readonly name: string
  /** From 1; 0 if there is no line. */
  readonly line: number
  readonly column: number
  /** Contents of secret files in the value. */
  readonly secrets: readonly string[]
}

export interface LoadOptions {
  /** `--config` or `--validate-config`. */
  readonly path?: string | undefined
  /** True: `path` must exist. False: without the file, defaults apply. */
  readonly explicit: boolean
  readonly env: Environment
  /** Values of flags by key, such as `{ mode: 'collector' }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>
  /** Directory of `./config.yaml`; default: the working directory. */
  readonly cwd?: string
  /** The fallback file. */
  readonly systemFile?: string
  readonly runtime?: Runtime
  /** A configuration as shown by `/config`, instead of a file: its texts are literal, including references. */
  readonly document?: { readonly name: string; readonly text: string }
  /** Also checks the files that keys name on this host; default false, as at a start. */
  readonly checkFiles?: boolean
}

export interface LoadedConfig {
  /** Complete even with problems: invalid values have their defaults. */
  readonly config: Config
  readonly origins: ReadonlyMap<string, Origin>
  /** With any problem the agent does not start. In the order of the file, then variables and flags. */
  readonly problems: readonly Problem[]
  /** For the log at level debug. */
  readonly notes: readonly string[]
  /** For the log at level warn. */
  readonly warnings: readonly string[]
  /** The file exists, but this process may not read it. */
  readonly denied: boolean
  /** The file as shown in messages, null for none. */
  readonly file: string | null
  /** Its absolute path. */
  readonly filePath: string | null
  /** The file is a pipe: it can be read only once. */
  readonly once: boolean
  /**
   * Absolute path of every file that was read or should have been, with its `contentState`: the configuration, and each
   * `${file:}` in it. Must not be shown.
   */
  readonly files: ReadonlyMap<string, string>
  /**
   * 16 hexadecimal digits that are the same for the same settings on every host: SHA-256 over the explicitly set keys,
   * in the file, by variables or by flags, with their values as in `/config`. So it reveals nothing more: from a hash
   * over the file's bytes, a short secret in a value or a comment could be guessed. A changed secret or comment
   * therefore does not change it.
   */
  readonly hash: string
}

/**
 * Finds and reads the configuration. Returns all of the user's mistakes as problems; throws nothing. Precedence: flags,
 * `SVC_*` variables, the file, `OTEL_*` variables, defaults.
 */
export function loadConfig(options: LoadOptions): LoadedConfig {
  const problems: Problem[] = []
  const notes: string[] = []
  const named: NamedFile[] = []
  const report: Report = { ...reportInto(problems), file: one => named.push(one) }
  const found = options.document ? undefined : findFile(options)
  const files = new Map<string, string>()
  let fromFile: Settings = new Map()
  let file: string | null = null
  let once = false
  let denied = false
  if (found) {
    const content = readContent(found.resolved, true)
    files.set(found.resolved, content.state)
    once = content.once
    denied = content.denied === true
    const text = textOf(content, found)
    if (typeof text !== 'string') problems.push(text)
    else {
      file = found.path
      fromFile = parseConfig(file, text, { env: options.env, files, isLiteral }, problems, named)
    }
  }
  if (options.document)
    fromFile = parseConfig(options.document.name, options.document.text, {}, problems, named)
  const otel = readOtelEnvironment(options.env, report.file)
  const flags: Settings = new Map()
  for (const [path, text] of Object.entries(options.flags ?? {})) {
    const leaf = schema.keys[path as 'mode'] as Key<unknown> | undefined
    if (text === undefined || !leaf) continue
    const value = looseScalar(`--${path.replaceAll('_', '-')}`, text)
    readKey(leaf, value, { written: path, canonical: path }, flags, report)
  }
  const fromEnvironment = readEnvironment(schema, options.env, report, notes)

  const given = new Map<string, Sourced>()
  const layers: readonly [SourceKind, Settings][] = [
    ['otel', otel.settings],
    ['file', fromFile],
    ['environment', fromEnvironment],
    ['flag', flags],
  ]
  for (const [source, settings] of layers) {
    for (const [path, setting] of settings) given.set(path, { ...setting, source })
  }
  const settings = effective(given, notes)
  const config = build(schema, settings)
  const wrong = problems.map(problem => problem.key)
  validate(config, settings, wrong, options.runtime ?? thisRuntime(), report)
  const scraping = checkScraping(config, settings, report)
  const doubts: Problem[] = []
  if (options.checkFiles)
    checkFiles(config, {
      named,
      settings,
      filePath: file === null ? null : found!.resolved,
      now: Date.now(),
      report,
      doubt: ({ place, key }, message) => doubts.push(problemAt(place, key, message)),
    })
  // The file from top to bottom, then problems without lines.
  problems.sort((a, b) => (a.line || Infinity) - (b.line || Infinity) || a.column - b.column)
  return {
    config,
    origins: origins(settings),
    problems,
    notes,
    warnings: [...otel.warnings, ...scraping, ...doubts.map(doubt => formatProblems([doubt]).trimEnd())],
    denied,
    file,
    filePath: file === null ? null : found!.resolved,
    once,
    files,
    hash: hashOf(settings),
  }
}

/** The configuration of an empty file. */
export function defaults(): Config {
  return build(schema, effective(new Map()))
}

function parseConfig(
  name: string,
  text: string,
  options: YamlOptions,
  problems: Problem[],
  named: NamedFile[],
): Settings {
  const settings: Settings = new Map()
  const ofFile: Problem[] = []
  const report: Report = { ...reportInto(ofFile), file: one => named.push(one) }
  const value = parseYaml(fileSource(name, text), options, report)
  if (value) readBranch(schema, value, { written: '', canonical: '' }, settings, report)
  checkTwins(settings, report)
  problems.push(...ofFile)
  return settings
}

interface Found {
  /** As shown in messages. */
  readonly path: string
  readonly resolved: string
  /** The variable that names it. */
  readonly by?: string
}

function findFile({
  path,
  explicit,
  env,
  cwd,
  systemFile: last = systemFile,
}: LoadOptions): Found | undefined {
  const inCwd = (name: string) => resolve(cwd ?? '.', name)
  const asGiven = (name: string) => ({ path: name, resolved: inCwd(name) })
  if (path !== undefined) return explicit || existsSync(inCwd(path)) ? asGiven(path) : undefined
  if (env.SVC_CONFIG_FILE) return { ...asGiven(env.SVC_CONFIG_FILE), by: 'SVC_CONFIG_FILE' }
  if (existsSync(inCwd('config.yaml'))) return asGiven('config.yaml')
  return existsSync(last) ? asGiven(last) : undefined
}

function textOf({ bytes, fault }: Content, { path, by }: Found): string | Problem {
  const cause = bytes !== undefined && !isUtf8(bytes) ? 'it is not UTF-8 text' : fault
  if (cause === '' && bytes) return bytes.toString('utf8').replace(/^\ufeff/, '')
  return problemWith(
    path,
    `cannot read the configuration: ${cause}${by === undefined ? '' : ` (${by} names it)`}`,
  )
}

function hashOf(settings: ReadonlyMap<string, Sourced>): string {
  const hash = createHash('sha256')
  for (const [path, leaf] of leaves(schema)) {
    const setting = settings.get(path)
    if (!setting) continue
    const shown = leaf.kind.show(setting.value, hideOf(leaf, setting.secrets))
    hash.update(`${path}=${JSON.stringify(shown)}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

function origins(settings: ReadonlyMap<string, Sourced>): Map<string, Origin> {
  const result = new Map<string, Origin>()
  for (const [path, { source, place, secrets }] of settings) {
    const [line, column] = lineAndColumn(place.source, place.start)
    const origin = { source, name: place.source.name, line, column, secrets }
    // Not enumerable, so that printing an origin does not print secrets.
    result.set(path, Object.defineProperty(origin, 'secrets', { enumerable: false }))
  }
  return result
}
