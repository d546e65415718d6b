// The flags of the replaced exporter (1.12.1, and what 1.5.0 had besides): those of collectors come from the collectors.

import { boolean } from '../../../foundation/schema/kinds.ts'
import { type Problem, reportInto } from '../../../foundation/schema/problem.ts'
import { isBranch, type Key, type Keys } from '../../../foundation/schema/tree.ts'
import { looseScalar, type Value } from '../../../foundation/schema/value.ts'
import type { Collector } from '../../../signals/metrics/collectors/collector.ts'
import { collectors as builtCollectors } from '../../../signals/metrics/collectors/index.ts'
import type { Chosen } from '../../agent/system-metrics.ts'
import { type FlagForm, parseFlagWords, UsageError } from './flag-words.ts'

export interface ExporterFlag extends FlagForm {
  readonly summary: string
  /** Default of a flag with a value; '' for none. */
  readonly fallback: string
  /** Alias of this flag, hidden in the help. */
  readonly meant?: string
}

/** The settings of the flags. */
export interface ExporterSettings {
  readonly chosen: readonly Chosen[]
  readonly path: {
    readonly procfs: string
    readonly sysfs: string
    readonly rootfs: string
    readonly udev: string
  }
  /** Addresses. */
  readonly listen: readonly string[]
  /** Listens on the sockets of systemd instead. */
  readonly systemdSocket: boolean
  readonly webConfigFile: string
  readonly metricsPath: string
  readonly maxRequests: number
  /** Includes metrics about this process. */
  readonly exporterMetrics: boolean
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error'
  readonly logFormat: 'logfmt' | 'json'
}

const own: readonly ExporterFlag[] = [
  value('path.procfs', '/proc', 'Mount point of procfs.'),
  value('path.sysfs', '/sys', 'Mount point of sysfs.'),
  value('path.rootfs', '/', 'Mount point of the root file system.'),
  value('path.udev.data', '/run/udev/data', 'Path of the udev database.'),
  value('web.telemetry-path', '/metrics', 'Path under which metrics are served.'),
  toggle(
    'web.disable-exporter-metrics',
    'Exclude metrics about the exporter itself (promhttp_*, process_*).',
  ),
  value('web.max-requests', '40', 'Maximum concurrent scrapes; 0 for no limit.'),
  toggle('collector.disable-defaults', 'Disable all collectors except those enabled by flags.'),
  value('runtime.gomaxprocs', '1', 'Accepted without effect: the work runs in one thread.'),
  value('collector.filesystem.stat-workers', '4', 'Accepted without effect, for the same reason.'),
  toggle('web.systemd-socket', 'Listen on sockets passed by systemd.'),
  { ...value('web.listen-address', ':9100', 'Address to listen on, such as [::1]:9100.'), takes: 'values' },
  value('web.config.file', '', 'YAML file with TLS, users, headers and a rate limit.'),
  value('log.level', 'info', 'Minimum level of log records: debug, info, warn or error.'),
  value('log.format', 'logfmt', 'Format of log records: logfmt or json.'),
  toggle('version', 'Print the version.'),
  toggle('help', 'Print this help; --help-man prints it as a manual page.'),
  { ...toggle('help-long', ''), meant: 'help' },
  { ...toggle('help-man', ''), meant: 'help-man' },
]

/** Former names of flags. */
const renamed: Readonly<Record<string, string>> = {
  'collector.diskstats.ignored-devices': 'collector.diskstats.device-exclude',
  'collector.filesystem.ignored-mount-points': 'collector.filesystem.mount-points-exclude',
  'collector.filesystem.ignored-fs-types': 'collector.filesystem.fs-types-exclude',
  'collector.qdisk.device-exclude': 'collector.qdisc.device-exclude',
  'collector.qdisk.device-include': 'collector.qdisc.device-include',
}

function value(name: string, fallback: string, summary: string): ExporterFlag {
  return { name, takes: 'value', fallback, summary }
}

function toggle(name: string, summary: string): ExporterFlag {
  return { name, takes: 'switch', fallback: '', summary }
}

type Unit = Collector<Keys>

/** The flags of an exporter with these collectors. */
export class ExporterFlags {
  /** By name, collectors first, in the order of the help. */
  readonly all: ReadonlyMap<string, ExporterFlag>
  readonly #units: readonly Unit[]

  constructor(units: readonly Unit[] = builtCollectors as readonly Unit[]) {
    this.#units = units
    const options = units.flatMap(unit => optionsOf(unit).flatMap(({ flag, leaf }) => optionFlag(flag, leaf)))
    const switches = units.map(({ name, summary, enabledByDefault }) =>
      toggle(`collector.${name}`, `${summary} (on by default: ${enabledByDefault ? 'yes' : 'no'}).`),
    )
    const all = new Map([...options, ...switches, ...own].map(flag => [flag.name, flag]))
    for (const [old, now] of Object.entries(renamed)) {
      const flag = all.get(now)
      if (flag !== undefined) all.set(old, { ...flag, name: old, meant: now })
    }
    this.all = all
  }

  /** Parses the words after the command. Throws a `UsageError`. */
  parse(argv: readonly string[]): GivenFlags {
    const values = new Map<string, readonly string[]>()
    for (const [name, given] of parseFlagWords(argv, this.all)) {
      const meant = this.all.get(name)!.meant ?? name
      if (values.has(meant)) throw new UsageError(`flag '${meant}' cannot be repeated`)
      values.set(meant, given)
    }
    return {
      has: name => values.get(name)?.[0] === 'true',
      settings: () => settingsOf(this.#units, values, this.all),
    }
  }
}

export interface GivenFlags {
  /** Whether a switch is on. */
  has(name: string): boolean
  /** Throws a `UsageError` for invalid values. */
  settings(): ExporterSettings
}

function settingsOf(
  units: readonly Unit[],
  values: ReadonlyMap<string, readonly string[]>,
  flags: ReadonlyMap<string, ExporterFlag>,
): ExporterSettings {
  const text = (name: string) => values.get(name)?.[0] ?? flags.get(name)!.fallback
  const on = (name: string, byDefault: boolean) => (values.get(name)?.[0] ?? `${byDefault}`) === 'true'
  const oneOf = <T extends string>(name: string, what: string, words: readonly T[]): T => {
    const given = text(name)
    if (!(words as readonly string[]).includes(given))
      throw new UsageError(`unrecognized log ${what} ${given}`)
    return given as T
  }
  const defaults = !on('collector.disable-defaults', false)
  const metricsPath = text('web.telemetry-path')
  if (!/^\/[^?#\s]*$/.test(metricsPath))
    throw new UsageError(`--web.telemetry-path: the path must begin with /, found "${metricsPath}"`)
  for (const name of ['runtime.gomaxprocs', 'collector.filesystem.stat-workers'])
    wholeNumber(name, text(name))
  return {
    chosen: units
      .filter(({ name, enabledByDefault }) => on(`collector.${name}`, defaults && enabledByDefault))
      .map(unit => ({ unit, options: readOptions(unit, values) })),
    path: {
      procfs: text('path.procfs'),
      sysfs: text('path.sysfs'),
      rootfs: text('path.rootfs'),
      udev: text('path.udev.data'),
    },
    listen: values.get('web.listen-address') ?? [flags.get('web.listen-address')!.fallback],
    systemdSocket: on('web.systemd-socket', false),
    webConfigFile: text('web.config.file'),
    metricsPath,
    maxRequests: wholeNumber('web.max-requests', text('web.max-requests')),
    exporterMetrics: !on('web.disable-exporter-metrics', false),
    logLevel: oneOf('log.level', 'level', ['debug', 'info', 'warn', 'error']),
    logFormat: oneOf('log.format', 'format', ['logfmt', 'json']),
  }
}

function wholeNumber(name: string, text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw new UsageError(`--${name}: expected a whole number, found "${text}"`)
  return Number(text)
}

/** An option of a collector, as declared by the command. */
interface Option {
  readonly name: string
  /** Undefined: always the default. */
  readonly flag: string | undefined
  readonly leaf: Key<unknown>
}

function optionsOf({ name: unit, options = {}, flags = {}, asOriginal = {} }: Unit): Option[] {
  return Object.entries(options).flatMap(([name, leaf]) => {
    if (isBranch(leaf)) return []
    const flag = flags[name] ?? `${unit}.${name.replaceAll('_', '-')}`
    return {
      name,
      flag: flag === '' ? undefined : `collector.${flag}`,
      leaf: name in asOriginal ? { ...leaf, default: asOriginal[name] } : leaf,
    }
  })
}

function optionFlag(
  name: string | undefined,
  { kind, default: fallback, description }: Key<unknown>,
): ExporterFlag | [] {
  if (name === undefined) return []
  if (kind === boolean) return toggle(name, `${description}${fallback === true ? ' On by default.' : ''}`)
  const shown = kind.show(fallback, plain => plain)
  return Array.isArray(fallback)
    ? { ...value(name, (shown as unknown[]).join(','), description), takes: 'values' }
    : value(name, String(shown), description)
}

/** The options of a collector; those without a flag have their defaults. */
function readOptions(
  unit: Unit,
  values: ReadonlyMap<string, readonly string[]>,
): Readonly<Record<string, unknown>> {
  const problems: Problem[] = []
  const report = reportInto(problems)
  const read = optionsOf(unit).map(({ name, flag, leaf }) => {
    const given = flag === undefined ? undefined : values.get(flag)
    return [
      name,
      given === undefined ? leaf.default : leaf.kind.read(asWritten(flag!, given, leaf), `--${flag}`, report),
    ]
  })
  const [problem] = problems
  if (problem !== undefined) throw new UsageError(`${problem.key}: ${problem.message}`)
  return Object.fromEntries(read) as Readonly<Record<string, unknown>>
}

/** A flag's value is a single item, including commas: patterns contain them. */
function asWritten(name: string, given: readonly string[], leaf: Key<unknown>): Value {
  const items = given.map(text => looseScalar(`--${name}`, text))
  return Array.isArray(leaf.default) ? { type: 'list', items, place: items[0]!.place } : items[0]!
}
