import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../test/helpers/soak.ts'
import { Operation } from '../model/stream.ts'
import { NumberedRequests, RequestsInFlight, RisingRequests, Tally } from './requests-in-flight.ts'

const most = 8

/** Adds as its user does. Returns what had to make room, and whether it was added. */
function add(
  requests: RisingRequests,
  tag: number,
  operation: Operation,
): { out: Operation[]; added: boolean } {
  const out: Operation[] = []
  for (let old = requests.crowdedOut(tag); old !== undefined; old = requests.crowdedOut(tag)) out.push(old)
  return { out, added: requests.add(tag, operation) }
}

test('operations come back by their numbers, whatever the order, and each once', () => {
  const command = fc.record({
    kind: fc.constantFrom('add', 'add', 'take', 'takeUpTo'),
    step: fc.integer({ min: 0, max: 12 }),
  })
  fc.assert(
    fc.property(fc.array(command, { maxLength: 200 }), commands => {
      const requests = new RisingRequests(most)
      const model = new Map<number, Operation>()
      let next = 1
      for (const { kind, step } of commands) {
        if (kind === 'add') {
          next += 1 + (step % 4)
          const operation = new Operation()
          const { out, added } = add(requests, next, operation)
          for (const old of out) {
            const [tag, oldest] = [...model][0]!
            assert.equal(old, oldest)
            model.delete(tag)
          }
          assert.equal(added, true)
          model.set(next, operation)
        } else if (kind === 'take') {
          assert.equal(requests.take(next - step), model.get(next - step))
          model.delete(next - step)
        } else {
          for (const [tag, operation] of [...model])
            if (tag <= next - step) {
              assert.equal(requests.takeUpTo(next - step), operation)
              model.delete(tag)
            }
          assert.equal(requests.takeUpTo(next - step), undefined)
        }
        assert.equal(requests.size, model.size)
        assert.ok(requests.size <= most)
      }
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('a tag that was there before, or is older than all, is not added', () => {
  const requests = new RisingRequests(most)
  assert.equal(add(requests, 5, new Operation()).added, true)
  assert.equal(add(requests, 5, new Operation()).added, false)
  assert.equal(add(requests, 4, new Operation()).added, false)
})

test('tags beyond what a double counts exactly do no harm', () => {
  const requests = new RisingRequests(most)
  let out = 0
  let added = 0
  for (const tag of [2 ** 60, 2 ** 60 + 1, 2 ** 63, 3, 2 ** 64]) {
    const result = add(requests, tag, new Operation())
    out += result.out.length
    if (result.added) added++
  }
  while (requests.takeUpTo(Number.POSITIVE_INFINITY) !== undefined) out++
  assert.equal(out, added)
})

test('requests come out in their order, whatever is taken out from among them', () => {
  const command = fc.record({
    kind: fc.constantFrom('push', 'push', 'push', 'shift', 'remove'),
    index: fc.nat(20),
  })
  fc.assert(
    fc.property(fc.array(command, { maxLength: 300 }), commands => {
      const requests = new RequestsInFlight<number>(16)
      const model: (number | undefined)[] = []
      for (const [i, { kind, index }] of commands.entries()) {
        if (kind === 'push') {
          const request = index === 0 ? undefined : i
          assert.equal(requests.push(request), model.length < 16)
          if (model.length < 16) model.push(request)
        } else if (kind === 'shift') assert.equal(requests.shift(), model.shift())
        else if (index < model.length) assert.equal(requests.remove(index), model.splice(index, 1)[0])
        assert.equal(requests.first, model[0])
        assert.deepEqual(
          Array.from({ length: requests.size }, (_, at) => requests.at(at)),
          model,
        )
      }
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('an answer finds the oldest request of its number', () => {
  const requests = new NumberedRequests<string>(4)
  for (const [number, name] of [
    [7, 'a'],
    [5, 'b'],
    [7, 'c'],
    [-1, 'd'],
  ] as const)
    assert.equal(requests.add(number, name), true)
  assert.equal(requests.add(8, 'e'), false)
  assert.deepEqual([requests.indexOf(7), requests.indexOf(7, 1), requests.indexOf(8)], [0, 2, -1])
  assert.equal(requests.take(5), 'b')
  assert.deepEqual([requests.take(7), requests.take(7), requests.take(7)], ['a', 'c', undefined])
  assert.deepEqual(
    [requests.has(-1), requests.get(-1), requests.numberAt(0), requests.size],
    [true, 'd', -1, 1],
  )
})

test('tables that share a tally are counted together, and give back what they no longer need', () => {
  const tally = new Tally()
  const one = new RequestsInFlight<number>(1_000, tally)
  const other = new NumberedRequests<number>(1_000, tally)
  for (let i = 0; i < 512; i++) one.push(i)
  other.add(1, 1)
  assert.deepEqual([tally.bytes, one.bytes], [512 * 8 + 4 * 16, 512 * 8 + 4 * 16])
  one.drain(() => {})
  assert.equal(tally.bytes, 4 * 16)
  other.take(1)
  other.clear()
  assert.equal(tally.bytes, 0)
})
