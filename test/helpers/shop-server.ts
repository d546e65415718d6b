// A small shop of its own process: a request of it asks Redis, then PostgreSQL, and writes a line to a log.
// Arguments: port, port of Redis, port of PostgreSQL, file of the log.

import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
// @ts-expect-error: it has no types of its own
import pg from 'pg'
import { postgresName } from './servers/postgres.ts'

const [port, redisPort, postgresPort, log] = process.argv.slice(2)
const redis = new Redis({ host: '127.0.0.1', port: Number(redisPort) })
const pool = new pg.Pool({
  host: '127.0.0.1',
  port: Number(postgresPort),
  user: postgresName,
  database: postgresName,
  max: 4,
})

/** Keeps a processor busy, so that there is something to profile. */
function price(rounds: number): number {
  let sum = 0
  for (let i = 1; i < rounds; i++) sum += Math.sqrt(i) * Math.sin(i)
  return sum
}

let served = 0
const server = createServer(async (request, response) => {
  const path = request.url ?? '/'
  try {
    await redis.incr('visits')
    const { rows } = await pool.query('select $1::int as item', [served])
    price(path.startsWith('/slow') ? 1_000_000 : 100_000)
    const failed = path.startsWith('/fail')
    appendFileSync(
      log!,
      `${new Date().toISOString()} ${failed ? 'ERROR' : 'INFO'} ${path} for jane@example.com took item ${rows[0].item}\n`,
    )
    response.writeHead(failed ? 500 : 200, { 'Content-Type': 'text/plain' })
    response.end(`${++served}\n`)
  } catch (error) {
    response.writeHead(503)
    response.end(String(error))
  }
})
server.listen(Number(port), '127.0.0.1', () =>
  process.stdout.write(`${JSON.stringify({ port: Number(port) })}\n`),
)
