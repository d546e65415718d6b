// The front end for customers. It queries the stock for goods and the orders service for purchases.
import { ask, serve } from './serve.mjs'

const parse = answer => JSON.parse(answer.body)

serve('shop', [
  [
    'GET',
    /^\/products\/(\d+)$/,
    async ({ id, trace }) => {
      const answer = await ask('stock', 'GET', `/items/${id}`, trace)
      return [answer.status, parse(answer)]
    },
  ],
  [
    'POST',
    /^\/checkout\/(\d+)$/,
    async ({ id, trace, log }) => {
      const answer = await ask('orders', 'POST', `/orders/${id}`, trace)
      if (answer.status < 500) {
        log('info', `sold ${id}`, { product: id })
        return [201, parse(answer)]
      }
      log('error', `checkout of ${id} failed: orders answered ${answer.status}`, { product: id })
      return [502, { error: 'try again' }]
    },
  ],
  [
    'GET',
    /^\/invoices\/(\d+)$/,
    async ({ id, trace }) => {
      const answer = await ask('orders', 'GET', `/orders/${id}/invoice`, trace)
      return [answer.status, parse(answer)]
    },
  ],
])
