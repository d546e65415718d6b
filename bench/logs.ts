/**
 * Following a log file: µs of CPU a line, from the file to a reader that does nothing, and to records of lines as
 * Docker writes them, plain and JSON.
 *
 * at most: 3 min
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RemoteFiles } from '../src/kernel/remote-files.ts'
import type { LineReader } from '../src/signals/logs/line-reader.ts'
import { LogFollower } from '../src/signals/logs/log-follower.ts'
import { LogPositions } from '../src/signals/logs/log-positions.ts'
import { logReader } from '../src/signals/logs/log-reader.ts'
import { RemoteLogs } from '../src/signals/logs/remote-logs.ts'
import { WaitingText } from '../src/signals/logs/waiting-text.ts'
import { silentLogger } from '../test/helpers/silent-logger.ts'
import { report } from './lib/figures.ts'

const lines = 400_000
const rounds = 5
const directory = mkdtempSync(join(tmpdir(), 'svc-bench-logs-'))

const nothing: LineReader = { line() {}, flush() {}, heldFrom: -1, odd: 0 }

const waiting = new WaitingText(16 * 1024 * 1024)

function reader(path: string): LineReader {
  return logReader('docker', {
    path,
    parse: { json: true, severity: true, traceContext: true },
    maxBytes: 256 * 1024,
    owner: 'user 0',
    waiting,
    emit() {},
  })
}

function docker(text: string): string {
  return `${JSON.stringify({ log: `${text}\n`, stream: 'stdout', time: '2026-01-02T03:04:05.123456789Z' })}\n`
}

const plain = docker('INFO GET /users/17 answered 200 in 12 ms for customer 4711, from the cache')
const json = docker('{"level":"info","msg":"GET /users/17","status":200,"took_ms":12,"customer":4711}')

/** CPU of a follower from its start until it has read a file to its end, in µs a line. */
async function follow(line: string, make: (path: string) => LineReader): Promise<number> {
  const path = join(directory, `${performance.now()}.log`)
  writeFileSync(path, line.repeat(lines))
  const before = process.cpuUsage()
  const follower = new LogFollower({
    sources: [{ name: 'files', patterns: () => [path], excluded: () => false, reader: () => make(path) }],
    positions: new LogPositions(join(directory, `${performance.now()}.positions`)),
    remoteLogs: new RemoteLogs(new RemoteFiles({ log: silentLogger })),
    startAt: 'beginning',
    maxLineBytes: 256 * 1024,
    pressure: () => 0,
    secured: () => Promise.resolve(),
    warn: console.error,
  })
  await follower.start()
  while (follower.state.lines < lines) await new Promise(resolve => setTimeout(resolve, 5))
  await follower.stop()
  const { user, system } = process.cpuUsage(before)
  rmSync(path)
  return (user + system) / lines
}

const cases: readonly [string, string, (path: string) => LineReader][] = [
  ['no_reader', plain, () => nothing],
  ['docker_plain', plain, reader],
  ['docker_json', json, reader],
]
try {
  const results = new Map<string, number[]>()
  for (let round = 0; round < rounds; round++)
    for (const [name, line, make] of cases)
      results.set(name, [...(results.get(name) ?? []), await follow(line, make)])
  for (const [name, values] of results) report(`logs.${name}.cpu_us_per_line`, values, 'us', 'less')
} finally {
  rmSync(directory, { recursive: true })
}
