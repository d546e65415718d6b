// The inventory. Item 13 cannot be reserved: its count is broken.
import { serve } from './serve.mjs'

const left = new Map(Array.from({ length: 20 }, (_, id) => [id, 1000]))

/** Some work, to have data in profiles. */
function price(id) {
  let cents = id
  for (let i = 0; i < 200_000; i++) cents = (cents * 31 + i) % 9973
  return cents / 100
}

serve('stock', [
  ['GET', /^\/items\/(\d+)$/, async ({ id }) => [200, { id, left: left.get(id) ?? 0, price: price(id) }]],
  [
    'POST',
    /^\/items\/(\d+)\/reserve$/,
    async ({ id, log }) => {
      if (id === 13) throw new Error('the count of item 13 is NaN')
      left.set(id, (left.get(id) ?? 1000) - 1)
      log('debug', `reserved item ${id}`, { item: id, left: left.get(id) })
      return [200, { id }]
    },
  ],
])
