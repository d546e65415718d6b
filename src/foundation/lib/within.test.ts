import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from './within.ts'

const never = new Promise<number>(() => undefined)

test('work in time resolves and rejects as it does, and leaves no timer', async () => {
  const before = process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
  assert.equal(await within(60_000, Promise.resolve(1)), 1)
  await assert.rejects(within(60_000, Promise.reject(new Error('own'))), /^Error: own$/)
  assert.equal(process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length, before)
})

test('late work is undefined, or what `late` returns or throws; its own fault comes to nobody', async () => {
  assert.equal(await within(1, never), undefined)
  assert.equal(await within(1, never, () => 'late'), 'late')
  const late = (): never => {
    throw new Error('late')
  }
  await assert.rejects(within(1, never, late), /^Error: late$/)
  let fail: (error: Error) => void = () => undefined
  const failing = new Promise<number>((_, reject) => {
    fail = reject
  })
  assert.equal(await within(1, failing), undefined)
  fail(new Error('after that'))
  await new Promise(resolve => setImmediate(resolve))
})
