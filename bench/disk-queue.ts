/**
 * Records of 16 KiB through the queue's log on disk, written and settled, by turns with SQLite (WAL, synchronous
 * NORMAL) as Node.js brings it: records per second and CPU per record. In DIRECTORY (first argument; default below the
 * system's temporary directory), which should be a real disk.
 *
 * at most: 4 min
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { realFiles } from '../src/pipeline/disk/real-files.ts'
import { openSegmentLog } from '../src/pipeline/disk/segment-log.ts'
import { report } from './lib/figures.ts'

const records = 20_000
const rounds = 5
const body = new Uint8Array(16 * 1024).map((_, i) => (i * 2_654_435_761) >>> 24)
const directory = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'svc-bench-queue-'))
const pause = () => new Promise(resolve => setImmediate(resolve))

async function ours(round: number): Promise<void> {
  const log = openSegmentLog({
    directory: join(directory, `log-${round}`),
    files: realFiles,
    fsyncMs: () => 200,
    kind: 2,
    fault: (what, error) => {
      throw new Error(what, { cause: error })
    },
  })
  for (let seq = 1; seq <= records; seq++) {
    log.append({
      seq,
      items: 100,
      plainBytes: body.length,
      orderKeys: 1,
      encoding: 'gzip',
      timeMs: Date.now(),
      body,
    })
    if (seq > 100) log.settle(seq - 100, 100)
    if (seq % 50 === 0) await pause()
  }
  await log.close()
}

async function sqlite(round: number): Promise<void> {
  const database = new DatabaseSync(join(directory, `sqlite-${round}`))
  database.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL')
  database.exec('CREATE TABLE queue (seq INTEGER PRIMARY KEY, body BLOB)')
  const insert = database.prepare('INSERT INTO queue VALUES (?, ?)')
  const remove = database.prepare('DELETE FROM queue WHERE seq = ?')
  for (let seq = 1; seq <= records; seq++) {
    insert.run(seq, body)
    if (seq > 100) remove.run(seq - 100)
    if (seq % 50 === 0) await pause()
  }
  database.close()
}

try {
  const results = new Map<string, { rates: number[]; cpu: number[] }>()
  for (let round = 0; round < rounds; round++)
    for (const [name, run] of [
      ['segment_log', ours],
      ['sqlite', sqlite],
    ] as const) {
      const began = performance.now()
      const cpu = process.cpuUsage()
      await run(round)
      const { user, system } = process.cpuUsage(cpu)
      const result = results.get(name) ?? { rates: [], cpu: [] }
      results.set(name, result)
      result.rates.push((records * 1000) / (performance.now() - began))
      result.cpu.push((user + system) / records)
      rmSync(join(directory, name === 'sqlite' ? `sqlite-${round}` : `log-${round}`), { recursive: true })
    }
  for (const [name, { rates, cpu }] of results) {
    report(`disk-queue.${name}.records_per_s`, rates, '{record}/s', 'more')
    report(`disk-queue.${name}.cpu_us_per_record`, cpu, 'us', 'less')
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
}
