import { cutEnd, cutStart } from '../../../foundation/lib/cut-text.ts'
import { grouped } from '../../../foundation/lib/number-text.ts'
import { kindTitles, printable, shareText, valueText } from '../../../signals/profiles/frame-text.ts'
import type { FlameDocument } from '../../../view/api/schemas.ts'

const mostFunctions = 30
const mostProcesses = 10
const mostPids = 3

/** The functions with the largest values, for a terminal of this width. */
export function tableOf(profile: FlameDocument, columns: number): string {
  return `${[...headOf(profile), ...processesOf(profile, columns), ...functionsOf(profile, columns)].join('\n')}\n`
}

function headOf(profile: FlameDocument): string[] {
  const { title, kind, unit, duration_ms, sample_rate, samples, total, unnamed, busy_ns, idle_ns } = profile
  const measured = [
    `${valueText(total, unit)} in ${duration_ms / 1000} s`,
    ...(samples > 0 ? [`${grouped(samples)} samples${sample_rate > 0 ? ` at ${sample_rate} Hz` : ''}`] : []),
    `${shareText(unnamed, total)} without a name`,
    ...(profile.lost_samples > 0 ? [`${grouped(profile.lost_samples)} samples lost`] : []),
  ]
  const host = busy_ns + idle_ns
  return [
    `${printable(title, 200)}: ${kindTitles[kind]}`,
    measured.join(', '),
    ...(host > 0 ? [`host: ${shareText(busy_ns, host)} busy, ${shareText(idle_ns, host)} idle`] : []),
    '',
  ]
}

/** Its processes, if there are several. */
function processesOf({ processes, total }: FlameDocument, columns: number): string[] {
  if (processes.length < 2) return []
  const rows = processes.slice(0, mostProcesses).map(({ service, executable, pids, value }) => {
    const numbers = pids.slice(0, mostPids).join(',') + (pids.length > mostPids ? ',…' : '')
    return [shareText(value, total), service, numbers, executable] as const
  })
  const left = processes.length - rows.length
  return [
    ...laidOut(['SHARE', 'SERVICE', 'PID', 'EXECUTABLE'], rows, columns),
    ...(left > 0 ? [`and ${grouped(left)} more`] : []),
    '',
  ]
}

function functionsOf(profile: FlameDocument, columns: number): string[] {
  const { total, unit } = profile
  if (total === 0) return [`No samples: no ${kindTitles[profile.kind]} in this time.`]
  const all = functions(profile)
  const shown = all.slice(0, mostFunctions)
  const rows = shown.map(
    ({ self, total: whole, name, file }) =>
      [shareText(self, total), shareText(whole, total), name, file] as const,
  )
  const rest = all.slice(mostFunctions).reduce((sum, { self }) => sum + self, 0)
  const more = `and ${grouped(all.length - shown.length)} more functions with ${valueText(rest, unit)} (-o FILE.pb.gz has all)`
  return [
    ...laidOut(['SELF', 'TOTAL', 'FUNCTION', 'FILE'], rows, columns),
    ...(all.length > shown.length ? [more] : []),
  ]
}

interface Row {
  readonly name: string
  readonly file: string
  self: number
  total: number
}

/** Functions by self value. Recursive ones count once in their total. */
function functions({ strings, nodes }: FlameDocument): Row[] {
  const rows = new Map<string, Row>()
  const rowOf: (Row | undefined)[] = []
  const { parent, name, file, self, total } = nodes
  const roots = new Uint8Array(parent.length)
  for (let node = 1; node < parent.length; node++) {
    const above = parent[node]!
    // The root and the groups below it are not functions. Merged nodes of groups become one row, to keep the sum.
    if (above === 0) {
      roots[node] = 1
      if (self[node] === 0) continue
    }
    const key = `${name[node]} ${file[node]}`
    let row = rows.get(key)
    if (row === undefined) {
      row = { name: strings[name[node]!] ?? '', file: strings[file[node]!] ?? '', self: 0, total: 0 }
      rows.set(key, row)
    }
    rowOf[node] = row
    row.self += self[node]!
    let at = above
    while (roots[at] === 0 && at > 0 && rowOf[at] !== row) at = parent[at]!
    if (rowOf[at] !== row) row.total += total[node]!
  }
  return [...rows.values()].sort((a, b) => b.self - a.self || b.total - a.total)
}

/** Columns of text, shares right-aligned; the third shrinks in favour of the last, whose end is cut last. */
function laidOut(
  head: readonly [string, string, string, string],
  rows: readonly (readonly [string, string, string, string])[],
  columns: number,
): string[] {
  const numeric = [0, ...(head[1] === 'TOTAL' ? [1] : [])]
  const clean = [head, ...rows].map(row => row.map(text => printable(text, 300)))
  const widths = [0, 1, 2, 3].map(i => Math.max(...clean.map(row => row[i]!.length)))
  const spare = columns - widths[0]! - widths[1]! - 6
  if (head[2] === 'FUNCTION') {
    widths[3] = Math.min(widths[3]!, Math.max(12, spare - widths[2]!, Math.floor(spare / 3)))
    widths[2] = Math.min(widths[2]!, Math.max(16, spare - widths[3]!))
  } else {
    widths[1] = Math.min(widths[1]!, 32)
    widths[3] = Math.max(12, columns - widths[0]! - widths[1]! - widths[2]! - 6)
  }
  return clean.map(row =>
    row
      .map((text, i) => {
        const fitting = i === 3 ? cutStart(text, widths[3]!) : cutEnd(text, widths[i]!)
        return numeric.includes(i) ? fitting.padStart(widths[i]!) : fitting.padEnd(widths[i]!)
      })
      .join('  ')
      .trimEnd(),
  )
}
