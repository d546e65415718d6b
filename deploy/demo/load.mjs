// Customers: LOAD_PER_SECOND (10) requests per second, most of them for products, until it is stopped.
import { randomBytes } from 'node:crypto'
import { ask, pause } from './serve.mjs'

const everyMs = 1000 / Number(process.env.LOAD_PER_SECOND ?? 10)
const some = count => 1 + Math.floor(Math.random() * count)

/** Per 20 requests. */
const visits = [
  [13, () => ['GET', `/products/${some(12)}`]],
  [5, () => ['POST', `/checkout/${some(13)}`]],
  [2, () => ['GET', `/invoices/${some(500)}`]],
].flatMap(([times, visit]) => Array(times).fill(visit))

for (;;) {
  const [method, path] = visits[some(visits.length) - 1]()
  ask('shop', method, path, randomBytes(16).toString('hex')).catch(error => {
    console.error(`the shop does not answer: ${error.message}`)
  })
  await pause(everyMs * (0.5 + Math.random()))
}
