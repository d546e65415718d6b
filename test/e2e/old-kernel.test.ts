// The capture back end for kernels without socket tracepoints, on such a kernel: Debian's, in a machine of its own.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { build } from 'esbuild'
import { bundleOptions } from '../../tools/bundle-options.ts'
import { Guest, withoutGuest } from '../helpers/guest.ts'

const skip = withoutGuest
const root = resolve(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'svc-bundle-'))
const requests = 5
let guest: Guest

/** What old-kernel-program.ts prints. */
interface Report {
  readonly release: string
  readonly absent: readonly string[]
  readonly ended: readonly string[]
  readonly selfPid: number
  readonly pid: number
  readonly counters: Readonly<Record<string, number>>
}

before(async () => {
  if (skip) return
  const program = join(directory, 'program.mjs')
  await build({
    entryPoints: [join(root, 'test/helpers/old-kernel-program.ts')],
    outfile: program,
    ...bundleOptions,
    format: 'esm',
  })
  guest = await Guest.start({
    trees: {
      '/opt/program.mjs': program,
      '/opt/node': process.execPath,
      '/opt/svc.node': join(root, 'dist/svc.node'),
      '/opt/syscalls.bpf.o': join(root, 'dist/syscalls.bpf.o'),
      '/opt/perf/syscalls.bpf.o': join(root, 'dist/perf/syscalls.bpf.o'),
    },
  })
  await guest.run('mount -t tracefs tracefs /sys/kernel/tracing')
})
after(async () => {
  await guest?.stop()
  rmSync(directory, { recursive: true })
})

for (const [buffers, port] of [
  ['ring', 8001],
  ['perf', 8002],
] as const)
  test(`requests on a kernel before 6.3 are seen, by ${buffers} buffers`, { skip }, async () => {
    const report = JSON.parse(
      await guest.run(`/opt/node --no-deprecation /opt/program.mjs ${port} ${buffers}`),
    ) as Report
    const [major = 0, minor = 0] = report.release.split('.').map(Number)
    assert.ok(major < 6 || (major === 6 && minor < 3), report.release)
    assert.deepEqual(report.absent, [])
    assert.equal(report.selfPid, report.pid)
    assert.equal(report.counters.segments_lost, 0)
    const ofEach = (what: string) => report.ended.filter(line => line === what).length
    const seen = report.ended.join('\n')
    assert.equal(ofEach('server GET /item 200 known'), requests, seen)
    assert.equal(ofEach('client GET 200 known'), requests, seen)
    assert.equal(ofEach('server GET /absent 404 known'), 1, seen)
    assert.equal(ofEach('client GET 404 known'), 1, seen)
    assert.equal(report.ended.length, 2 * (requests + 1))
  })
