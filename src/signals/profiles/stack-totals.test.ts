import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { StackCount } from '../../foundation/model/raw-stack.ts'
import { resource } from '../../foundation/model/resource.ts'
import { StackTotals } from './stack-totals.ts'

const shop = resource({ 'service.name': 'shop' })
const bank = resource({ 'service.name': 'bank' })

const counts = fc.array(
  fc.record({
    group: fc.constantFrom(shop, bank),
    kind: fc.constantFrom('cpu' as const, 'memory' as const),
    pid: fc.constantFrom(1, 2),
    comm: fc.constantFrom('a', 'a b'),
    userHash: fc.constantFrom(0, 1, 11),
    kernelHash: fc.constantFrom(0, 1, 11),
    request: fc.constantFrom(0, 7),
    count: fc.integer({ min: 1, max: 5 }),
    value: fc.integer({ min: 1, max: 1e9 }),
  }),
  { maxLength: 100 },
)

test('every count is in the total of its group, kind, stack, thread and request, and in no other', () => {
  fc.assert(
    fc.property(counts, all => {
      const totals = new StackTotals()
      for (const { group, ...count } of all) totals.add(group, count satisfies StackCount)
      const key = (of: Omit<StackCount, 'count' | 'value' | 'pid'>, name: unknown) =>
        JSON.stringify([name, of.kind, of.comm, of.userHash, of.kernelHash, of.request])
      const want = new Map<string, [number, number]>()
      for (const { group, count, value, ...of } of all) {
        const id = key(of, group.attributes.get('service.name'))
        const [counted, valued] = want.get(id) ?? [0, 0]
        want.set(id, [counted + count, valued + value])
      }
      const found = totals.groups().flatMap(({ group, kind, stacks }) =>
        [...stacks.values()].map(({ count, value, ...of }) => {
          const id = key({ ...of, kind }, group.attributes.get('service.name'))
          return [id, [count, value]] as const
        }),
      )
      assert.deepEqual(new Map(found), want)
      assert.equal(found.length, want.size)
    }),
  )
})

test('what was taken is counted no more', () => {
  const totals = new StackTotals()
  const count: StackCount = {
    kind: 'cpu',
    pid: 1,
    comm: 'a',
    userHash: 1,
    kernelHash: 0,
    request: 0,
    count: 1,
    value: 5,
  }
  totals.add(shop, count)
  const taken = totals.take()
  totals.add(shop, { ...count, pid: 2 })
  assert.deepEqual(
    [taken, totals].map(each => each.groups().map(({ pids }) => [...pids])),
    [[[1]], [[2]]],
  )
})

test('of too many stacks the values still add up', () => {
  const totals = new StackTotals()
  const group = resource({ 'service.name': 'many' })
  const count = { kind: 'cpu', pid: 1, comm: 'x', kernelHash: 0, request: 0, count: 1, value: 2 } as const
  for (let userHash = 1; userHash <= 60_000; userHash++) totals.add(group, { ...count, userHash })
  const stacks = [...totals.groups()[0]!.stacks.values()]
  assert.equal(stacks.length, 50_001)
  assert.equal(
    stacks.reduce((sum, { value }) => sum + value, 0),
    120_000,
  )
})

test('bytes are counted, and where memory is short new stacks are counted as one until the next profile', () => {
  const totals = new StackTotals()
  const group = resource({ 'service.name': 'short' })
  const count = { kind: 'cpu', pid: 1, comm: 'x', kernelHash: 0, request: 0, count: 1, value: 2 } as const
  assert.equal(totals.bytes, 0)
  for (let userHash = 1; userHash <= 10; userHash++) totals.add(group, { ...count, userHash })
  const { bytes } = totals
  assert.ok(bytes > 10 * 300)
  totals.shed()
  for (let userHash = 1; userHash <= 100; userHash++) totals.add(group, { ...count, userHash })
  assert.ok(totals.bytes < bytes + 500)
  const taken = totals.take()
  const stacks = [...taken.groups()[0]!.stacks.values()]
  assert.equal(stacks.length, 11)
  assert.equal(
    stacks.reduce((sum, { value }) => sum + value, 0),
    220,
  )
  assert.deepEqual([totals.bytes, taken.bytes > bytes], [0, true])
  for (let userHash = 1; userHash <= 10; userHash++) totals.add(group, { ...count, userHash })
  assert.equal(totals.groups()[0]!.stacks.size, 10)
})
