import { wrapped } from '../../foundation/lib/terminal-text.ts'
import type { Install } from '../../kernel/install.ts'
import { type HintKind, type Hints, hintKinds, type State } from '../../kernel/need.ts'
import type { Examined } from './check.ts'
import type { Diagnosis, Host, Sources } from './examine.ts'

const colours: Record<State, number> = { ok: 32, limited: 33, missing: 31, unknown: 36, note: 90 }

/** Longest detail, which may quote foreign text. */
const longest = 600

/** A diagnosis as plain ASCII, with a summary as its last line. Text is wrapped at `columns`; lines to copy are not. */
export function report(diagnosis: Diagnosis, color: boolean, columns = 100): string {
  const { host, sources, degraded, groups } = diagnosis
  const running = { title: 'Running agent', checks: degraded.map(limitOf) }
  const all = [running, ...groups].flatMap(({ checks }) => checks)
  const hasBoth = all.some(({ by }) => by !== undefined)
  const width = Math.max(...all.map(({ name }) => name.length))
  const lines = [titleOf(host), ...wrapped(plain(sourcesText(sources)), columns)]
  for (const { title, checks } of [running, ...groups]) {
    if (checks.length === 0) continue
    lines.push('', color ? `\x1b[1m${title.toUpperCase()}\x1b[0m` : title.toUpperCase())
    for (const check of checks)
      lines.push(...checkLines(check, { width, columns, color, hasBoth, install: host.install }))
  }
  return `${[...lines, '', summary(all)].join('\n')}\n`
}

/** A degradation reported by the agent, formatted like a check. */
function limitOf({ subsystem: name, reason: detail, hint }: Diagnosis['degraded'][number]): Examined {
  return { name, state: 'limited', detail, by: 'agent', ...(hint !== '' && { hints: { any: hint } }) }
}

/** The queried agent, and the configuration that was tested. */
function sourcesText({ address, version, mode, uptime, answered, why, configuration }: Sources): string {
  const files = { running: 'the agent’s configuration', defaults: 'the defaults (no configuration file)' }
  const known = files[configuration as keyof typeof files] ?? configuration
  const isSame = answered.includes('configuration') && configuration !== 'running'
  const used = isSame ? `${known} (same as the agent)` : known
  const because = why === '' ? '' : ` (${why})`
  if (address === '') return `No agent answered${because}; all checks ran here, with ${used}.`
  const who = answered.includes('status')
    ? `svc ${version}, mode ${mode}, up ${uptime}, at ${address}`
    : address
  if (answered.includes('tries'))
    return `Checks marked "agent" were run by ${who}${because}; those marked "here" by this command, with ${used}.`
  if (answered.includes('configuration'))
    return `Asked ${who}, which returned no checks${because}; all checks ran here, with ${used}.`
  return `An agent runs, ${who}${because}; all checks ran here, with ${used}.`
}

function titleOf({ version, os, kernel, arch, cpus, user, install }: Host): string {
  const how = {
    systemd: ', by systemd',
    container: ', in a container',
    kubernetes: ', in Kubernetes',
    host: '',
  }
  return plain(
    `Host checks: svc ${version} on ${os} ${kernel} ${arch}, ${cpus} CPU${cpus === 1 ? '' : 's'}, as ${user}${how[install]}`,
  )
}

interface Layout {
  readonly width: number
  readonly columns: number
  readonly color: boolean
  /** Show the tester beside each check. */
  readonly hasBoth: boolean
  readonly install: Install
}

function checkLines({ name, state, detail, impact, hints, by }: Examined, layout: Layout): string[] {
  const { width, columns, color, hasBoth, install } = layout
  const word = color ? `\x1b[${colours[state]}m${state.padEnd(8)}\x1b[0m` : state.padEnd(8)
  const shown = hasBoth ? `${word} ${(by ?? '').padEnd(5)}` : word
  const indent = ' '.repeat(width + (hasBoth ? 18 : 12))
  const room = columns - indent.length
  const [first = '', ...rest] = wrapped(plain(detail).slice(0, longest), room)
  const lines = [`  ${shown} ${plain(name).padEnd(width)} ${first}`, ...rest.map(line => indent + line)]
  if (impact !== undefined) lines.push(...wrapped(`Loss: ${plain(impact)}`, room).map(line => indent + line))
  return hints === undefined ? lines : [...lines, ...hintLines(hints, install, indent)]
}

/** Kinds of hints, the one for this installation first. */
export function hintOrder(hints: Hints, install: Install): HintKind[] {
  const rank = (kind: HintKind) => (kind === install ? -1 : hintKinds.indexOf(kind))
  return (Object.keys(hints) as HintKind[]).toSorted((a, b) => rank(a) - rank(b))
}

function hintLines(hints: Hints, install: Install, indent: string): string[] {
  const kinds = hintOrder(hints, install)
  if (kinds.length === 1) return [`${indent}Fix: ${plain(hints[kinds[0]!]!)}`]
  const lines = kinds.map(kind => `${indent}  ${label(kind).padEnd(10)} ${plain(hints[kind]!)}`)
  return [`${indent}Fix, one of:`, ...lines]
}

function label(kind: HintKind): string {
  return kind === 'any' ? 'anywhere' : kind
}

function summary(checks: readonly Examined[]): string {
  const counted = (['limited', 'missing', 'unknown'] as const)
    .map(state => [checks.filter(check => check.state === state).length, state] as const)
    .filter(([count]) => count > 0)
    .map(([count, state]) => `${count} ${state}`)
  return counted.length === 0 ? 'All checks passed.' : `${counted.join(', ')}. All other checks passed.`
}

/** Printable ASCII on one line: a detail may contain foreign text. */
function plain(text: string): string {
  return text
    .replaceAll('’', "'")
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/[^\x20-\x7e]/g, '?')
}
