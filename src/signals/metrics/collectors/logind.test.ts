import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { type Answer, type Asked, dbusServer, useSystemBus } from '../../../../test/helpers/dbus-server.ts'
import type { DBusValue } from '../../../foundation/lib/dbus-value.ts'
import { logind } from './logind.ts'

/** Session → remote, type, class. */
const sessions: Record<string, readonly [DBusValue, DBusValue, DBusValue]> = {
  _31: [false, 'wayland', 'user'],
  _32: [true, 'tty', 'user'],
  _33: [true, 'tty', 'user'],
  _34: [false, 'quantum', 'manager'],
  _35: [1, 'tty', 'user'],
}

function answer({ path, member, body }: Asked): Answer {
  const at = (name: string) => `/org/freedesktop/login1/session/${name}`
  if (member === 'ListSeats')
    return { signature: 'a(so)', body: [[['seat0', '/org/freedesktop/login1/seat/seat0']]] }
  if (member === 'ListSessions') {
    const list = [...Object.keys(sessions), '_39'].map((name, i) => [
      ...[String(i), 1000, 'ada', name === '_32' || name === '_33' ? '' : 'seat0', at(name)],
    ])
    return { signature: 'a(susso)', body: [list] }
  }
  const session = sessions[path.split('/').at(-1)!]
  if (session === undefined) return { error: 'org.freedesktop.DBus.Error.UnknownObject' }
  const value = session[['Remote', 'Type', 'Class'].indexOf((body as string[])[1]!)]!
  const signature = typeof value === 'boolean' ? 'b' : typeof value === 'number' ? 'u' : 's'
  return { signature: 'v', body: [{ signature, value }] }
}

async function read(t: TestContext, answers: (call: Asked) => Answer) {
  useSystemBus(t, (await dbusServer(t, { answer: answers })).path)
  return readWith(logind, {}, treeOf(t, {}))
}

test('sessions are counted by seat, and every combination is there', async t => {
  const { lines, outcome } = await read(t, answer)
  assert.equal(outcome, 'success')
  assert.equal(lines[0], '# TYPE node_logind_sessions gauge')
  assert.equal(lines.length, 1 + 2 * 2 * 7 * 5)
  assert.deepEqual(
    lines.slice(1).filter(line => !line.endsWith(' 0')),
    [
      'node_logind_sessions{class="other",remote="false",seat="seat0",type="other"} 1',
      'node_logind_sessions{class="user",remote="false",seat="seat0",type="wayland"} 1',
      'node_logind_sessions{class="user",remote="true",seat="",type="tty"} 2',
    ],
  )
})

test('a logind that fails is said in words', async t => {
  const check = async (member: string, with_: Answer, want: RegExp) => {
    const { lines, outcome, reason } = await read(t, call => (call.member === member ? with_ : answer(call)))
    assert.equal(outcome, 'failed')
    assert.match(reason, want)
    assert.deepEqual(lines, [])
  }
  const unknown = 'org.freedesktop.DBus.Error.ServiceUnknown'
  await check('ListSeats', { error: unknown, text: 'nobody has this name' }, /^nobody has this name/)
  await check('ListSessions', { signature: 'a(so)', body: [[]] }, /of type "a\(so\)"/)
  await check('Get', Buffer.alloc(64, 'B'), /version 66/)
  const many = Array<DBusValue>(5000).fill(['s', '/s'])
  await check('ListSeats', { signature: 'a(so)', body: [many] }, /the limit is 4096/)
})

test('without a bus there is nothing, in words', async t => {
  useSystemBus(t, '/nowhere/bus')
  const { lines, outcome, reason } = await readWith(logind, {}, treeOf(t, {}))
  assert.deepEqual(lines, [])
  assert.equal(outcome, 'failed')
  assert.match(reason, /cannot connect to D-Bus: connect ENOENT \/nowhere\/bus/)
})
