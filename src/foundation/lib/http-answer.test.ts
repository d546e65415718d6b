import assert from 'node:assert/strict'
import { type ClientRequest, createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import { after, before, test } from 'node:test'
import { bodyOf, HttpFault, headOf, startOf } from './http-answer.ts'

let answer: (response: ServerResponse) => void
const server = createServer((_, response) => answer(response))
let port: number

before(async () => {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  ;({ port } = server.address() as AddressInfo)
})
after(() => {
  server.closeAllConnections()
  server.close()
})

function call(to = port): ClientRequest {
  return request({ host: '127.0.0.1', port: to, path: '/', agent: false })
}

const fails = (work: Promise<unknown>, why: HttpFault['why'], message: RegExp) =>
  assert.rejects(work, error => {
    assert.ok(error instanceof HttpFault)
    assert.equal(error.why, why)
    assert.match(error.message, message)
    return true
  })

test('a whole answer has its head and its body', async () => {
  answer = response => response.writeHead(404).end('no such thing')
  const head = await headOf(call(), { timeoutMs: 10_000 })
  assert.equal(head.statusCode, 404)
  assert.equal(String(await bodyOf(head, 13, 10_000)), 'no such thing')
})

test('a body of one byte too much is refused, and its start can be had', async () => {
  answer = response => response.end('twelve bytes')
  await fails(bodyOf(await headOf(call(), {}), 11), 'large', /^it is larger than 11 bytes$/)
  const { bytes, cut } = await startOf(await headOf(call(), {}), 6)
  assert.deepEqual([String(bytes), cut], ['twelve', true])
})

test('a head and a body that do not come in time are late, and the connection ends', async () => {
  let ended = 0
  const counting = (response: ServerResponse) => response.once('close', () => ended++)
  answer = counting
  await fails(headOf(call(), { timeoutMs: 50 }), 'late', /^no answer within 50 ms$/)
  answer = response => {
    counting(response)
    response.write('a beginning')
  }
  await fails(bodyOf(await headOf(call(), { timeoutMs: 10_000 }), 100, 50), 'late', /^it does not end$/)
  await new Promise(resolve => setTimeout(resolve, 100))
  assert.equal(ended, 2)
})

test('a request is cancelled before, during and after its head, and leaves no listener', async () => {
  answer = () => undefined
  await fails(headOf(call(), { stop: AbortSignal.abort() }), 'stopped', /^the request was cancelled$/)
  const during = new AbortController()
  const waiting = fails(headOf(call(), { stop: during.signal }), 'stopped', /cancelled/)
  setTimeout(() => during.abort(), 20)
  await waiting

  answer = response => response.write('a beginning')
  const later = new AbortController()
  const body = headOf(call(), { stop: later.signal }).then(head => bodyOf(head, 100, 10_000))
  setTimeout(() => later.abort(), 50)
  await assert.rejects(body, HttpFault)

  answer = response => response.end('whole')
  const { signal } = new AbortController()
  let listeners = 0
  const { addEventListener, removeEventListener } = signal
  signal.addEventListener = (...all: Parameters<AbortSignal['addEventListener']>) => {
    listeners++
    addEventListener.apply(signal, all)
  }
  signal.removeEventListener = (...all: Parameters<AbortSignal['removeEventListener']>) => {
    listeners--
    removeEventListener.apply(signal, all)
  }
  const made = call()
  const closed = new Promise(resolve => made.once('close', resolve))
  await bodyOf(await headOf(made, { stop: signal }), 100)
  await closed
  assert.equal(listeners, 0)
})

test('a connection that ends early, and what is not HTTP, say so', async () => {
  answer = response => {
    response.writeHead(200, { 'content-length': 100 }).write('a beginning')
    setTimeout(() => response.destroy(), 20)
  }
  await fails(bodyOf(await headOf(call(), {}), 200), 'lost', /^it was cut off: /)
  answer = response => response.destroy()
  await fails(headOf(call(), {}), 'lost', /hang up/)
  const other = createTcpServer(socket => socket.end('SSH-2.0-x\r\n'))
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
  await fails(headOf(call((other.address() as AddressInfo).port), {}), 'lost', /^it does not speak HTTP$/)
  other.close()
})
