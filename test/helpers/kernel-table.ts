// docs/kernels.md: what was measured on each kernel, as cells of its tables.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BuffersReport } from './kernel-buffers-program.ts'
import { counts, type KernelReport, type Profiled, type Seen, wholeStacks } from './kernel-report.ts'

/** Debian's suites, by whose kernel each column is; `own` is that of the host that the tests run on. */
export const kernels = {
  bullseye: '5.10 (Debian 11)',
  own: '6.1 (Debian 12)',
  trixie: '6.12 (Debian 13)',
  sid: 'newest (Debian unstable)',
} as const
export type Suite = keyof typeof kernels

/** What ran on one kernel. */
export interface Measured {
  /** With the back end that the agent takes by itself, and all else. */
  readonly auto: KernelReport
  readonly syscalls: KernelReport
  readonly buffers: BuffersReport
}

interface Row {
  readonly name: string
  readonly cell: (measured: Measured) => string
}

const yes = 'yes'

/**
 * Whether a kernel does what a cell of the table says. Where the cell is of a run that missed some of a number, as an
 * emulated processor beside other work does, another run may have missed others, or none.
 */
export function matchesMeasured(cell: string, measured: string): boolean {
  const worst = ['no', 'limited', yes]
  const rank = (text: string) => worst.indexOf(text.split(':', 1)[0]!)
  const isCount = /: .*\b(?:\d+ of \d+|one of two)\b/.test(cell)
  return measured === cell || (isCount && rank(measured) >= rank(cell))
}

function exact(seen: Seen, wanted: Seen): string {
  const parts = (Object.keys(wanted) as (keyof Seen)[]).filter(each => seen[each] !== wanted[each])
  return parts.length === 0
    ? yes
    : `no: ${parts.map(each => `${each} ${seen[each]} of ${wanted[each]}`).join(', ')}`
}

const ofEach = (count: number): Seen => ({
  clientSpans: count,
  serverSpans: count,
  clientCount: count,
  serverCount: count,
})
const ofClients = (count: number): Seen => ({ ...ofEach(0), clientSpans: count, clientCount: count })

/** HTTP to a server that asks another one for each request, and Redis, whose server's side makes no spans. */
export function requestsCell(report: KernelReport): string {
  const { http, redis, failed = degraded(report, 'traces') } = report
  if (failed !== undefined) return `no: ${failed}`
  const found = [exact(http, ofEach(2 * counts.http)), exact(redis, ofClients(counts.redis))]
  return found.find(each => each !== yes) ?? yes
}

function insideTls({ tls, tlsFault }: KernelReport): string {
  return tlsFault === undefined ? exact(tls, ofEach(counts.tls)) : `no: ${timeless(tlsFault)}`
}

/** Nine of ten whole: a parent is told where it is certain, and never guessed. */
const joined = ({ chains }: KernelReport): string =>
  chains >= 0.9 * counts.http ? yes : `limited: ${chains} of ${counts.http} requests are one trace`

export const takesSock = ({ programs }: KernelReport): boolean => programs.includes('svc_sock_send')

/** Why the back end `sock` is not taken, in the words of `svc doctor`. */
function withoutSock({ auto: { doctor = [] } }: Measured): string {
  const fault = doctor.find(
    ({ name, state }) => ['socket tracepoints', 'capture programs'].includes(name) && state !== 'ok',
  )
  return `no: ${timeless(fault?.detail ?? 'svc doctor names no reason')}`
}

const bySock =
  (cell: (report: KernelReport) => string) =>
  (measured: Measured): string =>
    takesSock(measured.auto) ? cell(measured.auto) : withoutSock(measured)

/** The reason of what does not run, from /status. */
function degraded({ degraded }: KernelReport, subsystem: string): string | undefined {
  const found = degraded.find(each => each.subsystem === subsystem)
  return found && timeless(found.reason)
}

/** A reason without the version of the kernel that it is told of. */
function timeless(text: string): string {
  return text.replace(/Linux \d+\.\d+\.\d+\S*/, 'this kernel').replaceAll('|', '\\|')
}

/** Of a subsystem: its fault, or whether what it told is right. */
const part = (subsystem: string, right: (rest: NonNullable<KernelReport['rest']>) => string | true) => {
  return ({ auto }: Measured): string => {
    const reason = degraded(auto, subsystem)
    const found = right(auto.rest!)
    if (found === true) return reason === undefined ? yes : `limited: ${reason}`
    return `no: ${reason ?? found}`
  }
}

const equal = (found: number, wanted: number, of: string): string | true =>
  found === wanted || `${found} of ${wanted} ${of}`

const stacks = (what: Profiled) =>
  part('profiles', ({ profiles }) => wholeStacks[what].test(profiles[what]) || 'the stacks are not whole')

/** Each of five requests and a failing one, once on each side. Whose they are may be found too late. */
function buffered(ended: readonly string[]): string {
  const item = Array.from({ length: 5 }, () => ['client GET 200', 'server GET /item 200']).flat()
  const wanted = [...item, 'client GET 404', 'server GET /absent 404'].sort()
  const found = ended.map(each => each.replace(/ (un)?known$/, '')).sort()
  return found.join() === wanted.join() ? yes : `no: ${found.join(', ')}`
}

export const rows: readonly Row[] = [
  { name: '`sock`: N requests are N spans and N counts', cell: bySock(requestsCell) },
  { name: '`sock`: inside TLS', cell: bySock(insideTls) },
  { name: '`sock`: one trace through three processes', cell: bySock(joined) },
  { name: '`syscalls`: N requests are N spans and N counts', cell: ({ syscalls }) => requestsCell(syscalls) },
  { name: '`syscalls`: inside TLS', cell: ({ syscalls }) => insideTls(syscalls) },
  { name: '`syscalls`: one trace through three processes', cell: ({ syscalls }) => joined(syscalls) },
  {
    name: '`syscalls` by perf buffers, as before Linux 5.8',
    cell: ({ buffers: { ended, counters } }) =>
      counters.segments_lost === 0
        ? buffered(ended)
        : `no: ${counters.segments_lost} parts of calls were lost`,
  },
  {
    name: 'connections, round-trip times, flows',
    cell: part('connections', ({ opened, roundTrips, flowBytes }) =>
      // Half of the requests have a connection of their own, the others share one.
      roundTrips > 0 && flowBytes > 0
        ? equal(opened, counts.http / 2 + 1, 'connections')
        : 'nothing was told',
    ),
  },
  {
    name: 'programs that start and end',
    cell: part('process events', ({ execs, exits }) => {
      const found = equal(execs, counts.starts, 'starts')
      return found === true ? equal(exits, counts.starts, 'ends') : found
    }),
  },
  {
    name: 'system calls',
    cell: part('system calls', ({ statfsCalls }) => equal(statfsCalls, counts.statfs, 'calls')),
  },
  { name: 'profiles: CPU time, by tables', cell: stacks('cpu') },
  { name: 'profiles: functions in JavaScript', cell: stacks('script') },
  { name: 'profiles: memory', cell: stacks('memory') },
  { name: 'profiles: waiting', cell: stacks('off_cpu') },
  {
    name: 'host metrics',
    cell: part('host metrics', ({ hostFamilies }) => hostFamilies > 150 || `only ${hostFamilies} families`),
  },
  {
    name: 'host metrics that only the kernel counts (`ebpf`)',
    cell: part('host metrics', ({ collectorsFailed }) =>
      collectorsFailed.ebpf === undefined ? true : timeless(collectorsFailed.ebpf),
    ),
  },
  { name: 'log of a file', cell: part('logs', ({ lines }) => equal(lines, counts.lines, 'lines')) },
  {
    name: 'discovery of services',
    cell: part(
      'discovery',
      ({ services }) => services.includes('programs:8080') || 'the servers are not told',
    ),
  },
  {
    name: '`/ready`',
    cell: ({ auto: { ready } }) => {
      const failed = Object.values(ready).filter(each => each !== 'ok')
      return failed.length === 0 ? 'ready' : `not ready: ${failed.join('; ')}`
    },
  },
  { name: '`svc doctor` complains of', cell: ({ auto }) => complaints(auto) },
]

/** Topics of `svc doctor` that are a matter of the kernel. In others emulated processors are too slow for its patience. */
const topics = ['traces', 'processes', 'profiles']
/** As slow there: a program that has two seconds to answer. */
const ofPatience = ['decoder']

/** Names of what `svc doctor` finds missing or limited. */
export function complaints({ doctor, failed }: KernelReport): string {
  if (doctor === undefined) return `it did not run: ${failed}`
  const found = doctor.filter(
    ({ topic, name, state }) =>
      topics.includes(topic) && !ofPatience.includes(name) && (state === 'missing' || state === 'limited'),
  )
  return found.length === 0 ? 'nothing' : found.map(({ name, state }) => `${name} (${state})`).join(', ')
}

/** A table of Markdown. */
export function markdown(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}

/** Cells of a table of Markdown, without its head. */
export function cellsOf(table: string): string[][] {
  const lines = table.split('\n').filter(line => line.startsWith('|'))
  return lines.slice(2).map(line =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
}

export const page = join(import.meta.dirname, '../../docs/kernels.md')

/** The block between the comments `NAME` and `/NAME`. */
export function blockOf(name: string): string {
  const [, block] = readFileSync(page, 'utf8').split(new RegExp(`<!-- /?${name} -->\n`))
  if (block === undefined) throw new Error(`docs/kernels.md has no block ${name}`)
  return block.trim()
}

export function writeBlock(name: string, text: string): void {
  const parts = readFileSync(page, 'utf8').split(new RegExp(`(<!-- /?${name} -->\n)`))
  parts[2] = `\n${text}\n\n`
  writeFileSync(page, parts.join(''))
}
