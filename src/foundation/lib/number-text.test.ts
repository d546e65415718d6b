import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { amountText, bytesText, counted, countText, msText, partText, sizeText } from './number-text.ts'

test('durations, amounts and sizes read as people say them', () => {
  const check = (got: string, want: string) => assert.equal(got, want)
  check(msText(null), '-')
  check(msText(0.085), '85us')
  check(msText(0.9999), '1ms')
  check(msText(8), '8ms')
  check(msText(8.24), '8.2ms')
  check(msText(240.4), '240ms')
  check(msText(999.6), '1s')
  check(msText(1200), '1.2s')
  check(msText(90_000), '1m30s')
  check(msText(7_260_000), '2h1m')
  check(amountText(0), '0')
  check(amountText(0.001), '<.01')
  check(amountText(0.04), '0.04')
  check(amountText(41.2), '41.2')
  check(amountText(790), '790')
  check(amountText(123_456), '123k')
  check(countText(1234), '1,234')
  check(countText(1_234_567), '1235k')
  check(bytesText(0), '0 B')
  check(bytesText(1023), '1023 B')
  check(bytesText(1536), '1.50 KiB')
  check(bytesText(12.34 * 2 ** 20), '12.3 MiB')
  check(bytesText(2 ** 40), '1.00 TiB')
  check(sizeText(92 * 2 ** 20), '92M')
  check(partText(5.1 * 2 ** 30, 16 * 2 ** 30), '5.1/16G')
  check(partText(800 * 2 ** 20, 16 * 2 ** 30), '800M/16G')
  check(counted(1, 'item'), '1 item')
  check(counted(1234, 'item'), '1,234 items')
})

test('every duration and amount fits into its column of six', () => {
  const positive = fc.double({ min: 0, max: 1e9, noNaN: true })
  fc.assert(fc.property(positive, value => amountText(value).length <= 6))
  fc.assert(fc.property(positive, value => msText(value).length <= 6))
})
