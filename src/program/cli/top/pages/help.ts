import type { Line } from '../line.ts'

const keys: readonly (readonly [string, string])[] = [
  ['up down', 'choose a service'],
  ['enter', 'open it: its callers, operations and resource'],
  ['esc', 'back; on the first page, clear the filter'],
  ['/', 'only services with this text in name, protocol or CALLS'],
  ['s  S', 'sort by the next or previous column'],
  ['e', 'only services with errors'],
  ['p', 'pipeline: data flow and losses'],
  ['q', 'quit'],
]
const columns: readonly (readonly [string, string])[] = [
  ['req/s', 'requests served in the last minute; > if it only calls others'],
  ['err%', 'failed ones of these'],
  ['p50 p95 p99', 'percentiles of the duration'],
  ['CALLS', 'services that it calls, busiest first'],
  ['drops', 'items that svc lost since its start: p shows why'],
]

export function helpLines(): Line[] {
  const row = ([term, meaning]: readonly [string, string]): Line => [
    ['  ', undefined],
    [term.padEnd(13), 'bold'],
    meaning,
  ]
  return [
    [[' KEYS', 'dim']],
    ...keys.map(row),
    [],
    [[' COLUMNS', 'dim']],
    ...columns.map(row),
    [],
    ['  any key closes this help'],
  ]
}
