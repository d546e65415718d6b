import type { Line } from '../line.ts'

const keys: readonly (readonly [string, string])[] = [
  ['up down', 'choose a service'],
  ['enter', 'open it: its callers, operations and resource'],
  ['esc', 'back; on the first page, clear the filter'],
  ['/', 'only services with a text in name, protocol or CALLS'],
  ['s  S', 'order by the next or the last column'],
  ['e', 'only services with errors'],
  ['p', 'the pipeline: where data goes, and where it is lost'],
  ['q', 'end'],
]
const columns: readonly (readonly [string, string])[] = [
  ['req/s', 'requests answered in the last minute; > where it only calls'],
  ['err%', 'of them that failed'],
  ['p50 p95 p99', 'half, 95 and 99 of 100 took no longer'],
  ['CALLS', 'whom it calls, the most asked first'],
  ['drops', 'items that svc lost since it started: p tells why'],
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
    [[' WHAT IT SHOWS', 'dim']],
    ...columns.map(row),
    [],
    ['  any key closes this'],
  ]
}
