import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { runit } from './runit.ts'

/** A status file as runsv writes it (runit, sv.c). */
function status({ seconds, want, state }: { seconds: number; want: string; state: number }): Buffer {
  const bytes = Buffer.alloc(20)
  bytes.writeBigUInt64BE(2n ** 62n + 10n + BigInt(seconds), 0)
  bytes.writeUInt32LE(4242, 12)
  bytes[17] = want === '' ? 0 : want.charCodeAt(0)
  bytes[19] = state
  return bytes
}

test('services show their states', async t => {
  const root = treeOf(t, {
    'sv/web/supervise/status': status({ seconds: 1_700_000_123, want: 'u', state: 1 }),
    'sv/web/down': '',
    'service/batch/supervise/status': status({ seconds: 1_600_000_000, want: 'd', state: 2 }),
    'service/short/supervise/status': 'short',
    'service/README': 'no service',
  })
  symlinkSync('../sv/web', join(root, 'service/web'))
  mkdirSync(join(root, 'service/none'))
  const { lines, outcome } = await readWith(runit, { servicedir: join(root, 'service') })
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.startsWith('#')),
    [
      'node_service_desired_state{service="batch",supervisor="runit"} 0',
      'node_service_desired_state{service="web",supervisor="runit"} 1',
      'node_service_normal_state{service="batch",supervisor="runit"} 1',
      'node_service_normal_state{service="web",supervisor="runit"} 0',
      'node_service_state{service="batch",supervisor="runit"} 2',
      'node_service_state{service="web",supervisor="runit"} 1',
      'node_service_state_last_change_timestamp_seconds{service="batch",supervisor="runit"} 1.6e+09',
      'node_service_state_last_change_timestamp_seconds{service="web",supervisor="runit"} 1.700000123e+09',
    ],
  )
})

test('a directory that is not there fails', async t => {
  const { outcome, reason } = await readWith(runit, { servicedir: join(treeOf(t, {}), 'none') })
  assert.equal(outcome, 'failed')
  assert.match(reason, /cannot read the services of runit: ENOENT/)
})

test('what is on a file system that may hang is not looked at', async t => {
  const up = status({ seconds: 1, want: 'u', state: 1 })
  const root = treeOf(t, { 'service/near/supervise/status': up, 'nas/far/supervise/status': up })
  symlinkSync('../nas/far', join(root, 'service/far'))
  mkdirSync(join(root, 'proc/self'), { recursive: true })
  writeFileSync(join(root, 'proc/self/mountinfo'), `41 30 0:7 / ${root}/nas rw - nfs4 x:/y rw\n`)
  const { lines } = await readWith(runit, { servicedir: join(root, 'service') }, root)
  assert.ok(lines.includes('node_service_state{service="near",supervisor="runit"} 1'))
  assert.ok(!lines.some(line => line.includes('service="far"')))
  const { outcome, reason } = await readWith(runit, { servicedir: join(root, 'nas') }, root)
  assert.equal(outcome, 'failed')
  assert.match(reason, /nas is on a file system that may hang/)
})
