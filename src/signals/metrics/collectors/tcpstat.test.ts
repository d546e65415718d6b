import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NetworkNamespace, withoutNamespaces } from '../../../../test/helpers/network-namespace.ts'

/** A server with 3 clients, of which one closed its end, one sent 5 bytes that wait, and one does nothing. */
const sockets = `
  const { createServer, connect } = await import('node:net')
  const open = []
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, socket => open.push(socket))
  await new Promise(done => server.listen(0, '::', done))
  const { port } = server.address()
  const dial = host => new Promise(done => { const socket = connect({ port, host, allowHalfOpen: true }, () => done(socket)) })
  const clients = [await dial('127.0.0.1'), await dial('::1'), await dial('127.0.0.1')]
  while (open.length < 3) await new Promise(done => setTimeout(done, 1))
  await new Promise(done => clients[0].end(done))
  await new Promise(done => clients[1].write('hello', done))
  for (const socket of [server, ...open, ...clients]) socket.unref()`

test('sockets of both families are counted by state, with what waits in them', {
  skip: withoutNamespaces,
}, t => {
  const namespace = new NetworkNamespace(t, ['link set lo up'])
  const { lines, outcome } = namespace.read('tcpstat', {}, sockets)
  assert.equal(outcome, 'success')
  assert.deepEqual(lines, [
    '# TYPE node_tcp_connection_states gauge',
    'node_tcp_connection_states{state="close_wait"} 1',
    'node_tcp_connection_states{state="established"} 4',
    'node_tcp_connection_states{state="fin_wait2"} 1',
    'node_tcp_connection_states{state="listen"} 1',
    // The end of a stream counts as a byte, and the most connections that may wait as bytes to send.
    'node_tcp_connection_states{state="rx_queued_bytes"} 6',
    'node_tcp_connection_states{state="tx_queued_bytes"} 511',
  ])
})

test('a host without sockets has no series', { skip: withoutNamespaces }, t => {
  const { lines, outcome } = new NetworkNamespace(t, []).read('tcpstat')
  assert.deepEqual([lines, outcome], [[], 'success'])
})
