// Flags of the node exporter, parsed like the exporter itself and svc's replacement for it.

import { dirname, resolve } from 'node:path'
import { schema } from '../../../config/index.ts'
import { readContent } from '../../../foundation/lib/file-content.ts'
import { nearest } from '../../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { type Branch, isBranch, type Key, type Keys } from '../../../foundation/schema/tree.ts'
import type { Collector } from '../../../signals/metrics/collectors/collector.ts'
import { UsageError } from '../node-exporter/flag-words.ts'
import { ExporterFlags, type ExporterSettings } from '../node-exporter/flags.ts'
import type { Conversion } from './conversion.ts'
import { commandWords, type Input, logicalLines, readInput, readVariables, readYaml } from './input.ts'
import { plainOf } from './plain-value.ts'

const root = 'agent.nodeexporter'
const endpoint: Branch = schema.keys.agent.keys.nodeexporter

/** The flags in a systemd unit, or in its environment file. */
export function flagsIn(input: Input, conversion: Conversion): string[] {
  const lines = logicalLines(input.text)
  const start = lines.findLast(line => /^ExecStart\s*=\s*\S/.test(line))
  if (start !== undefined) return flagsOfUnit(start, lines, conversion)
  const variables = readVariables(input.text)
  if (variables !== undefined) {
    const named = ['ARGS', 'OPTIONS', 'NODE_EXPORTER_ARGS', 'NODE_EXPORTER_OPTS'].find(name =>
      variables.has(name),
    )
    if (named !== undefined) return commandWords(variables.get(named)!)
    const holding = [...variables].find(([, value]) => /^\s*--[a-z]/.test(value))
    if (holding !== undefined) return commandWords(holding[1])
  } else if (lines.length > 0 && lines.every(line => line.startsWith('--')))
    return lines.flatMap(commandWords)
  throw new StartError(
    `cannot read ${input.name}: it contains no ExecStart= of a unit, no ARGS= and no flags`,
    ExitCode.usage,
  )
}

function flagsOfUnit(start: string, lines: readonly string[], conversion: Conversion): string[] {
  const variables = new Map<string, string>()
  const valueIn = (line: string, key: string) => line.slice(line.indexOf('=', key.length) + 1).trim()
  for (const line of lines) {
    if (/^Environment\s*=/.test(line)) {
      for (const word of commandWords(valueIn(line, 'Environment'))) {
        const equals = word.indexOf('=')
        if (equals > 0) variables.set(word.slice(0, equals), word.slice(equals + 1))
      }
    } else if (/^EnvironmentFile\s*=/.test(line)) {
      const file = valueIn(line, 'EnvironmentFile').replace(/^-/, '')
      if (file === '') continue
      const { bytes, fault } = readContent(file, false)
      const read = bytes === undefined ? undefined : readVariables(bytes.toString('utf8'))
      if (read === undefined)
        conversion.leaveOut(
          `EnvironmentFile=${file}`,
          `${fault || 'some of its lines have no NAME='}; convert that file, too`,
        )
      for (const [name, value] of read ?? []) variables.set(name, value)
    }
  }
  const [, ...words] = commandWords(valueIn(start, 'ExecStart'))
  return words.flatMap(word => {
    // A word that is a variable is split into words; one within a word is not (systemd.service(5)).
    const whole = /^\$(?:(\w+)|\{(\w+)\})$/.exec(word)
    if (whole?.[1] !== undefined) return commandWords(variables.get(whole[1]) ?? '')
    return [
      word.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => variables.get(name) ?? '').replaceAll('$$', '$'),
    ]
  })
}

/** Sets the keys for these flags. */
export function fromNodeExporter(words: readonly string[], conversion: Conversion): void {
  const flags = new ExporterFlags()
  const given = goodFlags(words, flags, conversion)
  const settings = flags.parse([...given.values()].flat()).settings()
  collectorsOf(settings, given, conversion)
  for (const [name, value] of Object.entries(settings.path))
    setUnlessDefault(['path', name], value, `--path.${name}`, conversion)
  const [address = ':9100', ...others] = settings.listen
  if (settings.systemdSocket)
    conversion.leaveOut(
      '--web.systemd-socket',
      `svc opens its socket itself; set ${root}.listen_address, and disable the socket unit`,
    )
  else setUnlessDefault(['listen_address'], address, '--web.listen-address', conversion)
  for (const other of others)
    conversion.leaveOut(
      `--web.listen-address=${other}`,
      `svc listens on one address; an address without a host, as in :9100, means all of them`,
    )
  setUnlessDefault(['max_requests'], settings.maxRequests, '--web.max-requests', conversion)
  if (settings.metricsPath !== '/metrics')
    conversion.leaveOut(
      `--web.telemetry-path=${settings.metricsPath}`,
      'the path of svc is /metrics; set that as metrics_path of the job that scrapes it',
    )
  if (given.has('web.disable-exporter-metrics'))
    conversion.note(
      '--web.disable-exporter-metrics: svc serves its own metrics at self_telemetry.listen instead',
    )
  if (settings.logLevel !== 'info') conversion.set('log_level', settings.logLevel, '--log.level')
  if (given.has('log.format'))
    conversion.note(
      '--log.format needs no conversion: the log is JSON, on a terminal it is text (log_format)',
    )
  for (const name of ['runtime.gomaxprocs', 'collector.filesystem.stat-workers', 'version', 'help'])
    if (given.has(name))
      conversion.note(`--${name} needs no conversion: it does not affect the configuration`)
  if (settings.webConfigFile !== '') webConfig(settings.webConfigFile, conversion)
}

/** Valid words of each flag, by flag name. */
function goodFlags(
  argv: readonly string[],
  flags: ExporterFlags,
  conversion: Conversion,
): ReadonlyMap<string, readonly string[]> {
  const good = new Map<string, string[]>()
  const words = argv.flatMap(word => (/^@./.test(word) ? wordsOfFile(word.slice(1)) : [word]))
  const names = [...flags.all.keys()]
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!
    if (word === '--') continue
    if (!word.startsWith('--')) {
      const what = word.startsWith('-') ? 'the exporter has no such flag' : 'not a flag'
      conversion.leaveOut(`"${word}"`, `${what}; delete it`)
      continue
    }
    const equals = word.indexOf('=')
    const name = word.slice(2, equals < 0 ? undefined : equals)
    const bare = name.replace(/^no-/, '')
    const flag = flags.all.get(name) ?? flags.all.get(bare)
    if (flag === undefined) {
      const near = nearest(bare, names)
      const no = bare === name ? '' : 'no-'
      const hint =
        near === undefined ? 'it is not one of node_exporter 1.12 or 1.5' : `did you mean --${no}${near}?`
      conversion.leaveOut(`--${name}`, `unknown flag; ${hint}`)
      while (words[i + 1]?.startsWith('-') === false) i++
      continue
    }
    const own = [word]
    if (flag.takes !== 'switch' && equals < 0 && words[i + 1]?.startsWith('-') === false)
      own.push(words[++i]!)
    const meant = flag.meant ?? flag.name
    const before = good.get(meant)
    if (before !== undefined && flag.takes !== 'values') {
      conversion.leaveOut(`--${name}`, 'given twice, the first one is used; remove one')
      continue
    }
    try {
      flags.parse(own).settings()
      good.set(meant, [...(before ?? []), ...own])
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      conversion.leaveOut(`--${name}`, `${error.message.replace(/^--[^:]+: /, '')}; correct it`)
    }
  }
  return good
}

function wordsOfFile(file: string): string[] {
  return readInput(file)
    .text.split(/\r?\n/)
    .filter(line => line !== '' && !line.startsWith('#'))
}

function collectorsOf(
  { chosen }: ExporterSettings,
  given: ReadonlyMap<string, readonly string[]>,
  conversion: Conversion,
): void {
  const on = new Map(chosen.map(({ unit, options }) => [unit.name as string, options]))
  const switches = endpoint.keys.collectors as Branch
  for (const name of Object.keys(switches.keys)) {
    const [origin = '--collector.disable-defaults'] = given.get(`collector.${name}`) ?? []
    setUnlessDefault(['collectors', name], on.has(name), origin, conversion)
  }
  for (const name of given.keys()) {
    const unit = /^collector\.([^.]+)\./.exec(name)?.[1]
    if (unit !== undefined && Object.hasOwn(switches.keys, unit) && !on.has(unit))
      conversion.note(`--${name} needs no conversion: its collector is off`)
  }
  for (const { unit } of chosen) {
    const { name: of, asOriginal = {} } = unit as Collector<Keys>
    const own = [...given.keys()].filter(flag => flag.startsWith(`collector.${of}.`))
    for (const [option, value] of Object.entries(on.get(of) ?? {})) {
      // Without such a flag, svc's default collects more, which does no harm.
      if (option in asOriginal && own.length === 0) continue
      const flag = own.find(each => spelled(each) === spelled(`collector.${of}.${option}`))
      const origin = flag === undefined ? 'as node_exporter does' : `--${flag}`
      setUnlessDefault([of, option], value, origin, conversion)
    }
  }
}

function spelled(name: string): string {
  return name.replaceAll(/[-_.]/g, '').toLowerCase()
}

/** Sets a key below the endpoint if its value is not the default; the key need not exist. */
function setUnlessDefault(
  names: readonly string[],
  value: unknown,
  origin: string,
  conversion: Conversion,
): void {
  let node: Key<unknown> | Branch | undefined = endpoint
  for (const name of names) node = node && isBranch(node) ? node.keys[name] : undefined
  if (node === undefined || isBranch(node) || JSON.stringify(node.default) === JSON.stringify(value)) return
  conversion.set(
    `${root}.${names.join('.')}`,
    node.kind.show(value, shown => shown),
    origin,
  )
}

/** Converts the TLS part of the exporter's web configuration; svc supports nothing else of it. */
function webConfig(file: string, conversion: Conversion): void {
  const flag = '--web.config.file'
  const keep = 'keep using "svc node-exporter" with this flag, or put a proxy in front of svc'
  let read: unknown
  try {
    const value = readYaml(readInput(file))
    read = value && plainOf(value)
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    conversion.leaveOut(flag, `${error.message}; correct the path`)
    return
  }
  const { tls_server_config: tls, ...others } = asMap(read)
  for (const name of Object.keys(others))
    if (name !== 'http_server_config' || 'headers' in asMap(others[name]))
      conversion.leaveOut(`${flag}, ${name}`, `svc does not support this at this endpoint; ${keep}`)
  const { cert_file: cert, key_file: key, client_ca_file: ca, client_auth_type: auth, ...rest } = asMap(tls)
  for (const name of Object.keys(rest))
    conversion.leaveOut(
      `${flag}, tls_server_config.${name}`,
      `svc supports files only, and chooses the rest; ${keep}`,
    )
  const mustShow = auth === 'RequireAndVerifyClientCert'
  if (auth !== undefined && auth !== '' && auth !== 'NoClientCert' && !mustShow) {
    conversion.leaveOut(
      `${flag}, client_auth_type`,
      `svc requires verified client certificates or none; ${keep}`,
    )
  }
  if (typeof cert !== 'string' || typeof key !== 'string') return
  conversion.set(`${root}.tls.enabled`, true, flag)
  for (const [name, path] of Object.entries({ cert_file: cert, key_file: key, client_ca_file: ca }))
    if (typeof path === 'string' && (mustShow || name !== 'client_ca_file'))
      conversion.set(`${root}.tls.${name}`, resolve(dirname(resolve(file)), path), flag)
  if (mustShow) conversion.set(`${root}.tls.client_auth`, true, flag)
}

function asMap(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
}
