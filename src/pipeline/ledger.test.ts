import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Account } from './ledger.ts'

test('what was exported is known by endpoint, and the sum stays exact beyond the endpoints that are named', () => {
  const account = new Account()
  account.deliver('first:1', 0)
  assert.deepEqual([...account.exportedBy], [['first:1', 0]])
  let total = 0
  for (let i = 1; i <= 40; i++) {
    account.deliver(`host:${i}`, i)
    account.deliver('steady:1', 1)
    total += i + 1
    assert.ok(account.exportedBy.size <= 17)
    assert.equal(
      [...account.exportedBy.values()].reduce((sum, items) => sum + items, 0),
      total,
    )
  }
  assert.equal(account.exported, total)
  assert.equal(account.exportedBy.get('steady:1'), 40)
  assert.equal(account.exportedBy.get('host:40'), 40)
  assert.equal(account.exportedBy.has('host:25'), false)
  assert.equal(account.exportedBy.get('other'), (25 * 26) / 2)
})
