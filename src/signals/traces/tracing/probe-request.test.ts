import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelOperation } from '../../../../test/helpers/kernel-operation.ts'
import { http1 } from '../protocols/http1.ts'
import { isProbe } from './probe-request.ts'

const protocol = http1.create({ route: () => '' })

/** HTTP/1, as its server and its client see it. */
function check(head: string, want: boolean): void {
  const bytes = Buffer.from(`before${head}behind`)
  for (const server of [true, false]) {
    const operation = kernelOperation({
      protocol: 'http1',
      server,
      head: { bytes, start: 6, end: 6 + head.length },
    })
    protocol.fillCall?.(operation)
    assert.equal(isProbe(operation), want, `${head}, server: ${server}`)
  }
}

/** A call that was read elsewhere. */
function checkCall(path: string, attributes: Readonly<Record<string, string>>, want: boolean): void {
  const operation = kernelOperation({ protocol: 'http2' })
  const { call } = operation
  call.path = path
  for (const [key, value] of Object.entries(attributes)) call.attributes.add(key, value)
  assert.equal(isProbe(operation), want, path)
}

test('requests for health and metrics are told by their path or by who asks', () => {
  check('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n', true)
  check('GET /health?full=1 HTTP/1.1\r\n\r\n', true)
  check('HEAD /actuator/health/liveness HTTP/1.1\r\n\r\n', true)
  check('GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: kube-probe/1.31\r\n\r\n', true)
  check('GET /custom HTTP/1.1\r\nuser-agent:Prometheus/3.0.0\r\n\r\n', true)
})

test('HTTP/2 and the health checks of gRPC are told as well', () => {
  checkCall('/healthz', { 'http.request.method': 'GET' }, true)
  checkCall('/', { 'http.request.method': 'GET', 'user_agent.original': 'kube-probe/1.31' }, true)
  checkCall('', { 'rpc.method': 'grpc.health.v1.Health/Check' }, true)
  checkCall('', { 'rpc.method': 'grpc.health.v1.Health/Watch' }, true)
  checkCall('/users', { 'http.request.method': 'GET' }, false)
  checkCall('', { 'rpc.method': 'shop.Cart/Check' }, false)
  checkCall('', {}, false)
})

test('all other requests are none', () => {
  check('GET /users/17 HTTP/1.1\r\nUser-Agent: curl/8.0\r\n\r\n', false)
  check('POST /metrics HTTP/1.1\r\n\r\n', false)
  check('GET /metrics/of/my/shop HTTP/1.1\r\n\r\n', false)
  check('GET /healthy-food HTTP/1.1\r\n\r\n', false)
  check('', false)
  check('\r\n\r\n', false)
  check('GET', false)
})
