import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../../../test/helpers/program.ts'
import { ReportedTargets } from '../../../../../test/helpers/reported-targets.ts'
import { createLogger } from '../../../../foundation/lib/logger.ts'
import type { TargetGroup } from '../scrape-job.ts'
import { TargetGroupPublisher } from './_target-group-publisher.ts'
import { openSource } from './index.ts'

function group(source: string, ...addresses: string[]): TargetGroup {
  return {
    source,
    targets: addresses.map(each => new Map([['__address__', each]])),
    labels: new Map([['team', 'blue']]),
  }
}

test('what is written is told as it is, not before the start and not after the stop', async () => {
  const told = new ReportedTargets()
  const groups = [group('0', 'a:1', 'a:2')]
  const source = openSource({ kind: 'static', groups }, told.options)
  assert.equal(source.state.connected, false)
  source.start()
  assert.equal(told.times, 0, 'nobody is called while he starts it')
  await told.has('a:1,a:2')
  assert.equal(told.groups[0], groups[0])
  assert.equal(source.state.targets, 2)
  source.stop()
  const stopped = openSource({ kind: 'static', groups }, told.options)
  stopped.start()
  stopped.stop()
  await new Promise(resolve => setTimeout(resolve, 100))
  assert.equal(told.times, 1)
})

test('changes are told together, and what stays the same stays the same object', async t => {
  const noted = new ReportedTargets()
  const told = new TargetGroupPublisher('test', noted.options)
  t.after(() => told.close())
  for (let i = 0; i < 100; i++) told.put('a', [group('a', `a:${i}`)])
  told.put('b', [group('b', 'b:1'), group('b', 'b:2')])
  await noted.has('a:99,b:1,b:2')
  assert.equal(noted.times, 1)
  const [a, b1, b2] = noted.groups
  told.put('a', [group('a', 'a:99')])
  told.put('b', [group('b', 'b:1'), group('b', 'b:3')])
  await noted.has('a:99,b:1,b:3')
  assert.equal(noted.groups[0], a)
  assert.equal(noted.groups[1], b1)
  assert.notEqual(noted.groups[2], b2)
  told.put('a', [])
  told.keepOnly(new Set(['c']))
  await noted.has('')
  assert.equal(noted.times, 3)
})

test('a fault is warned of once, and shown until it is away', async t => {
  const logged: string[] = []
  const log = createLogger({ level: 'warn', format: 'json', write: line => logged.push(line) })
  const told = new TargetGroupPublisher('test', { log, onGroups: () => undefined, now: () => 1234 })
  t.after(() => told.close())
  for (let i = 0; i < 5; i++) told.report('a', { reason: 'it broke', hint: 'fix it' })
  assert.equal(logged.length, 1)
  assert.match(
    logged[0]!,
    /keeping the last known targets.*"source":"test","reason":"it broke","hint":"fix it"/,
  )
  told.known()
  assert.deepEqual(told.state, {
    connected: false,
    reason: 'it broke',
    hint: 'fix it',
    groups: 0,
    targets: 0,
    updatedMs: 1234,
  })
  told.report('a', undefined)
  assert.equal(told.state.connected, true)
  await until('an empty set is told', 20_000, () => told.state.connected)
})
