import assert from 'node:assert/strict'
import { test } from 'node:test'
import { failureOf, processEvents } from './kernel-parts.ts'
import { failureText } from './kernel-state.ts'

test('a reason that several parts have stands once, beside those of others', () => {
  const check = (failed: readonly (readonly [string, string])[], want: string) =>
    assert.equal(failureText(failed.map(([subsystem, reason]) => ({ subsystem, reason, hint: '' }))), want)
  check([['profiles', 'no memory']], 'profiles: no memory')
  check(
    [
      ['traces', 'no BTF'],
      ['profiles', 'no memory'],
      ['process events', 'no BTF'],
    ],
    'traces, process events: no BTF; profiles: no memory',
  )
  check([], '')
})

test('what is done about a part that does not run: what fixes it, or to do without', () => {
  const check = (hint: string, want: string) =>
    assert.deepEqual(failureOf(processEvents, { reason: 'no ring', hint }), {
      subsystem: 'process events',
      reason: 'no ring',
      hint: want,
    })
  check('run as root', 'run as root')
  check('', 'run svc doctor kernel; or set agent.ebpf.process.enabled: false')
})
