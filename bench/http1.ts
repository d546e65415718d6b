/**
 * What one exchange costs from its bytes to a finished call, and then into the RED table, in nanoseconds.
 *
 * at most: 2 min
 */
import { CapturedHead, Connection } from '../src/foundation/model/connection.ts'
import { hostOwner, resource } from '../src/foundation/model/resource.ts'
import { Operation } from '../src/foundation/model/stream.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'
import { RedTable } from '../src/signals/traces/tracing/red.ts'
import { Routes } from '../src/signals/traces/tracing/routes.ts'
import { report } from './lib/figures.ts'

const routes = new Routes({ patterns: [], unmatched: 'heuristic', maxSegmentCardinality: 10 })
const protocol = protocols
  .find(unit => unit.name === 'http1')!
  .create({ route: ({ status }, path) => routes.route(hostOwner, 'shop', path, status !== 404) })
const red = new RedTable({ startUs: 0 })
const shop = resource({ 'service.name': 'shop' })

function headOf(path: string): Buffer {
  return Buffer.from(
    `GET ${path} HTTP/1.1\r\nHost: shop.example:8080\r\nConnection: keep-alive\r\nAccept: text/html,*/*;q=0.8\r\n` +
      'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36\r\n' +
      'Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-US,en;q=0.9\r\nCookie: session=0123456789abcdef\r\n\r\n',
  )
}

function measure(name: string, heads: readonly Buffer[], server: boolean, withRed: boolean): void {
  const operation = new Operation(new Connection(), new CapturedHead())
  const { connection, call } = operation
  Object.assign(connection, { server, peerAddress: '10.0.0.2', peerPort: 51_000 })
  operation.status = 200
  const run = (count: number): number => {
    const start = process.hrtime.bigint()
    for (let i = 0; i < count; i++) {
      const head = heads[i % heads.length]!
      operation.head.bytes = head
      operation.head.end = head.length
      call.clear()
      protocol.fillCall?.(operation)
      if (withRed && call.duration !== undefined) red.observe(shop, call.duration, call.dimensions, i)
    }
    return Number(process.hrtime.bigint() - start) / count
  }
  run(200_000)
  const times = Array.from({ length: 7 }, () => run(200_000))
  report(`http1.${name}.ns_per_exchange`, times, 'ns', 'less')
}

const few = Array.from({ length: 20 }, (_, i) => headOf(`/api/v1/users/${i}?page=${i}`))
const many = Array.from({ length: 50_000 }, (_, i) => headOf(`/api/v1/users/${i}?page=${i}`))
measure('server.20_urls', few, true, false)
measure('server.20_urls_red', few, true, true)
measure('client.20_urls', few, false, false)
measure('client.20_urls_red', few, false, true)
measure('server.50000_urls_red', many, true, true)
measure('client.50000_urls_red', many, false, true)
