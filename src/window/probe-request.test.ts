import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exchange } from '../model/exchange.ts'
import { isProbe } from './probe-request.ts'

function check(head: string, want: boolean, protocol = 'http1'): void {
  const exchange = new Exchange()
  exchange.protocol = protocol
  exchange.bytes = Buffer.from(`before${head}behind`)
  exchange.requestStart = 6
  exchange.requestEnd = 6 + head.length
  assert.equal(isProbe(exchange), want, head)
}

test('requests for health and metrics are told by their path or by who asks', () => {
  check('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n', true)
  check('GET /health?full=1 HTTP/1.1\r\n\r\n', true)
  check('HEAD /actuator/health/liveness HTTP/1.1\r\n\r\n', true)
  check('GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: kube-probe/1.31\r\n\r\n', true)
  check('GET /custom HTTP/1.1\r\nuser-agent:Prometheus/3.0.0\r\n\r\n', true)
})

test('all other requests are none', () => {
  check('GET /users/17 HTTP/1.1\r\nUser-Agent: curl/8.0\r\n\r\n', false)
  check('POST /metrics HTTP/1.1\r\n\r\n', false)
  check('GET /metrics/of/my/shop HTTP/1.1\r\n\r\n', false)
  check('GET /healthy-food HTTP/1.1\r\n\r\n', false)
  check('GET /metrics HTTP/1.1\r\n\r\n', false, 'http2')
  check('', false)
  check('\r\n\r\n', false)
  check('GET', false)
  check(`GET /${'a'.repeat(5000)} HTTP/1.1\r\nUser-Agent: kube-probe/1\r\n\r\n`, false)
})
