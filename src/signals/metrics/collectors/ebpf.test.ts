// owns: host
import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'node:test'
import { readWith } from '../../../../test/helpers/collector.ts'
import { withoutBpf } from '../../../../test/helpers/compile-bpf.ts'
import { svcProcess } from '../../../kernel/gen/host.ts'
import { ebpf, mostOpen } from './ebpf.ts'

/** Connections over loopback, with data both ways; they have ended when it resolves. */
async function talk(connections: number): Promise<void> {
  const server = createServer(socket => socket.pipe(socket))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  for (let i = 0; i < connections; i++) {
    const socket = connect(port, '127.0.0.1')
    for (let j = 0; j < 3; j++) {
      socket.write('hello')
      await new Promise(resolve => socket.once('data', resolve))
    }
    await new Promise<void>(resolve =>
      socket
        .end()
        .resume()
        .once('close', () => resolve()),
    )
  }
  await new Promise(resolve => server.close(resolve))
}

const readingOf = (lines: readonly string[], series: string) =>
  Number(lines.find(line => line.startsWith(`${series} `))?.slice(series.length + 1))

test('connections are observed with their round-trip times, and files counted by process', {
  skip: withoutBpf,
}, async () => {
  const held = Array.from({ length: 300 }, () => openSync('/dev/null', 'r'))
  // Connections that end between two readings.
  const { lines, outcome, reason } = await readWith(ebpf, {}, undefined, () => talk(20))
  for (const fd of held) closeSync(fd)
  assert.equal(outcome, 'success', reason)
  // Both sides of each.
  assert.ok(readingOf(lines, 'node_tcp_rtt_microseconds_count') >= 40, lines.join('\n'))
  assert.ok(readingOf(lines, 'node_tcp_rtt_microseconds_sum') >= 40)
  const buckets = lines
    .filter(line => line.startsWith('node_tcp_rtt_microseconds_bucket'))
    .map(line => Number(line.split(' ')[1]))
  assert.equal(buckets.length, 15)
  assert.deepEqual(
    buckets,
    buckets.toSorted((a, b) => a - b),
  )
  assert.equal(buckets.at(-1), readingOf(lines, 'node_tcp_rtt_microseconds_count'))
  assert.ok(readingOf(lines, 'node_tcp_retransmits_total') >= 0)
  const comm = readFileSync('/proc/self/comm', 'utf8').trim()
  assert.ok(readingOf(lines, `node_process_open_fds{comm="${comm}"}`) >= 300, lines.join('\n'))
})

test('the names with most files are shown, and the others together', () => {
  const record = (comm: string, files: number) => {
    const bytes = Buffer.alloc(svcProcess.size)
    bytes.writeUInt32LE(files, svcProcess.openFds)
    bytes.write(comm, svcProcess.comm)
    return bytes
  }
  const records = [record('sixteen-letters!', 5), record('nginx', 3), record('nginx', 4), record('nginx', 0)]
  assert.deepEqual(mostOpen(Buffer.concat(records)), [
    ['nginx', 7],
    ['sixteen-letters!', 5],
  ])
  const many = Array.from({ length: 60 }, (_, i) => record(`p${i}`, i + 1))
  const shown = mostOpen(Buffer.concat(many))
  assert.equal(shown.length, 51)
  assert.deepEqual(shown[0], ['p59', 60])
  assert.deepEqual(shown.at(-1), ['other', 55])
  const named = new Map(mostOpen(Buffer.concat([...many, record('other', 100)])))
  assert.equal(named.size, 50)
  assert.equal(named.get('other'), 100 + 66)
  assert.deepEqual(mostOpen(Buffer.alloc(svcProcess.size - 1)), [])
})
