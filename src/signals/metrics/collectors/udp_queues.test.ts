import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { readFileSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { sumQueues, udp_queues } from './udp_queues.ts'

test('the queues of all sockets are added up', async () => {
  const { lines, outcome } = await readWith(udp_queues)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_udp_queues gauge',
    'node_udp_queues{ip="v4",queue="rx"} 2689',
    'node_udp_queues{ip="v4",queue="tx"} 256',
    'node_udp_queues{ip="v6",queue="rx"} 31',
    'node_udp_queues{ip="v6",queue="tx"} 0',
  ])
})

test('a host without IPv4 or IPv6 shows the other; one without either has no data', async t => {
  const root = copyOfTree(t)
  rmSync(`${root}/proc/net/udp`)
  const { lines, outcome } = await readWith(udp_queues, {}, root)
  assert.equal(outcome, 'success')
  assert.equal(lines.length, 3)
  assert.equal((await readWith(udp_queues, {}, treeOf(t, {}))).outcome, 'no_data')
})

const head = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n'
const line = '    0: 00000000:0000 00000000:0000 07 000000FF:0000abcd 00:00000000 00000000\n'

test('lines without queues are errors', () => {
  const check = (text: string) =>
    assert.throws(() => sumQueues(Buffer.from(text), 'net/udp'), /a line has no queues/)
  check('')
  check(line)
  check(`${head}\n`)
  check(`${head}    0: 00000000:0000 00000000:0000 07\n${line}`)
  check(`${head}    0: 00000000:0000 00000000:0000 07 :0 00\n`)
  check(`${head}    0: 00000000:0000 00000000:0000 07 0: 00\n`)
  check(`${head}    0: 00000000:0000 00000000:0000 07 00FF`)
  check(`${head}    0: 00000000:0000 00000000:0000 07 G:0 0\n`)
  check(`${head}    0: 00000000:0000 00000000:0000 07 ${'F'.repeat(400)}:0 0\n`)
})

test('tens of thousands of sockets are added up in one pass', () => {
  const { tx, rx } = sumQueues(Buffer.from(head + line.repeat(50_000)), 'net/udp')
  assert.deepEqual([tx, rx], [255 * 50_000, 0xabcd * 50_000])
})

test('the files of this kernel are understood, with a socket in them', async () => {
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  try {
    const { tx, rx } = sumQueues(readFileSync('/proc/net/udp'), 'net/udp')
    assert.ok(Number.isSafeInteger(tx) && Number.isSafeInteger(rx))
  } finally {
    socket.close()
  }
})

test('junk is no success', t => survivesJunk(t, udp_queues, ['proc/net/udp', 'proc/net/udp6']))
