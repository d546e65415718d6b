// Takes orders, after a query to the stock. Its invoices are slow: each is made while the customer waits.
import { ask, pause, serve } from './serve.mjs'

let orders = 0

serve('orders', [
  [
    'POST',
    /^\/orders\/(\d+)$/,
    async ({ id, trace, log }) => {
      const { status } = await ask('stock', 'POST', `/items/${id}/reserve`, trace)
      if (status !== 200) throw new Error(`the stock answered ${status} for item ${id}`)
      orders++
      log('info', `order ${orders} of item ${id}`, { order: orders, item: id })
      return [201, { order: orders }]
    },
  ],
  [
    'GET',
    /^\/orders\/(\d+)\/invoice$/,
    async ({ id, trace, log }) => {
      await ask('stock', 'GET', `/items/${id}`, trace)
      const ms = 300 + Math.round(Math.random() * 500)
      await pause(ms)
      log('warn', `invoice ${id} took ${ms} ms`, { order: id, ms })
      return [200, { invoice: id, total: 19.99 }]
    },
  ],
])
