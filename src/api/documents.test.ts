import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uptimeText } from './documents.ts'

test('uptime leaves leading zero units out and pads nothing', () => {
  const check = (seconds: number, want: string) => assert.equal(uptimeText(seconds * 1000), want)
  check(0, '0s')
  check(30.9, '30s')
  check(930, '15m30s')
  check(86_400 + 930, '24h15m30s')
  check(3605, '1h0m5s')
  check(-1, '0s')
})
