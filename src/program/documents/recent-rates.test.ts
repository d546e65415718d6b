import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecentRates } from './recent-rates.ts'

test('growth is measured over the last seconds', () => {
  const rates = new RecentRates()
  const read = (value: number, atMs: number) => rates.read(new Map([['a', value]]), atMs)
  assert.equal(rates.rate('a'), 0)
  read(100, 0)
  assert.equal(rates.rate('a'), 0)
  read(110, 1000)
  assert.equal(rates.rate('a'), 10)
  read(150, 2000)
  assert.equal(rates.rate('a'), 25)
  for (let second = 3; second <= 10; second++) read(150, second * 1000)
  assert.equal(rates.rate('a'), 0)
  assert.equal(rates.rate('unknown'), 0)
  read(140, 11_000)
  assert.ok(rates.change('a') < 0)
  assert.equal(rates.rate('a'), 0)
})

test('who looked away for long begins anew', () => {
  const rates = new RecentRates()
  rates.read(new Map([['a', 0]]), 0)
  rates.read(new Map([['a', 1_000_000]]), 60_000)
  assert.equal(rates.rate('a'), 0)
  rates.read(new Map([['a', 1_000_002]]), 61_000)
  assert.equal(rates.rate('a'), 2)
})
