import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../../test/helpers/soak.ts'
import { Operation } from '../../../foundation/model/stream.ts'
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

test('requests come out in their order', () => {
  const command = fc.record({
    kind: fc.constantFrom('push', 'shift'),
    count: fc.nat(200),
    known: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(command, { maxLength: 50 }), commands => {
      const requests = new RequestsInFlight<number>(300)
      const model: (number | undefined)[] = []
      for (const { kind, count, known } of commands) {
        for (let i = 0; i < count; i++) {
          if (kind === 'push') {
            const request = known ? i : undefined
            assert.equal(requests.push(request), model.length < 300)
            if (model.length < 300) model.push(request)
          } else assert.equal(requests.shift(), model.shift())
        }
        assert.deepEqual([requests.first, requests.size], [model[0], model.length])
      }
      const rest: number[] = []
      requests.drain(request => rest.push(request))
      assert.deepEqual(
        rest,
        model.filter(request => request !== undefined),
      )
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('requests are found by their numbers, and stay in their order, whatever is taken out from among them', () => {
  const command = fc.record({
    kind: fc.constantFrom('add', 'add', 'add', 'take', 'shift', 'remove'),
    number: fc.constantFrom(-1, 0, 1, 2, 3, 2 ** 31, 2 ** 31 + 1, 2 ** 32, 2 ** 53, 2 ** 60),
    index: fc.nat(200),
    times: fc.nat(100),
  })
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), commands => {
      const requests = new NumberedRequests(200)
      const model: Operation[] = []
      const withNumber = (wanted: number) => model.filter(({ id }) => id === wanted)
      for (const { kind, number, index, times } of commands) {
        for (let i = 0; i < times; i++) {
          const wanted = number + (index % 2 === 0 ? 0 : i)
          if (kind === 'add') {
            const request = new Operation()
            assert.equal(requests.add(wanted, request), model.length < 200)
            if (model.length < 200) model.push(request)
          } else if (kind === 'take') {
            const [first] = withNumber(wanted)
            assert.equal(requests.take(wanted), first)
            if (first !== undefined) model.splice(model.indexOf(first), 1)
          } else if (kind === 'shift') assert.equal(requests.shift(), model.shift())
          else if (index < model.length) requests.remove(model.splice(index, 1)[0]!)
        }
        assert.deepEqual(inOrder(requests), model)
        assert.equal(requests.newest, model.at(-1))
        const same: Operation[] = []
        for (let each = requests.get(number); each !== undefined; each = requests.next(each)) same.push(each)
        assert.deepEqual(same, withNumber(number))
      }
    }),
    { numRuns: soak ? 5_000 : 200 },
  )
})

function inOrder(requests: NumberedRequests): Operation[] {
  const list: Operation[] = []
  for (let each = requests.oldest; each !== undefined; each = each.newer) list.push(each)
  assert.equal(list.length, requests.size)
  return list
}

test('one of thousands is taken out and another one added in constant time, whichever it is', () => {
  const most = 4_096
  const few = timeOfReplacing(new NumberedRequests(most), 64)
  const many = timeOfReplacing(new NumberedRequests(most), most)
  assert.ok(many < 8 * few + 20, `${many} ms with ${most}, ${few} ms with 64`)
})

/** Milliseconds: the best of five. */
function timeOfReplacing(requests: NumberedRequests, size: number): number {
  let next = 1
  let best = Number.POSITIVE_INFINITY
  for (; next <= size; next++) requests.add(next, new Operation())
  for (let run = 0; run < 5; run++) {
    const start = performance.now()
    for (let i = 0; i < 50_000; i++) {
      const operation = requests.take(next - size / 2)!
      requests.add(next++, operation)
      requests.take(-next)
    }
    best = Math.min(best, performance.now() - start)
    while (requests.size > 0) requests.shift()
    for (let i = 0; i < size; i++) requests.add(next++, new Operation())
  }
  return best
}

test('tables that share a tally are counted together, and give back what they no longer need', () => {
  const tally = new Tally()
  const one = new RequestsInFlight<number>(2_000, tally)
  const other = new NumberedRequests(2_000, tally)
  for (let i = 0; i < 2_000; i++) one.push(i)
  assert.ok(tally.bytes >= 2_000 * 8)
  while (one.size > 1) one.shift()
  assert.ok(tally.bytes < 64 * 16, `${tally.bytes}`)
  const before = tally.bytes
  for (let i = 0; i < 2_000; i++) other.add(i, new Operation())
  assert.ok(tally.bytes >= before + 2_000 * 8)
  for (let i = 1; i < 2_000; i++) other.take(i)
  assert.ok(tally.bytes < 2 * 64 * 16, `${tally.bytes}`)
  assert.deepEqual([one.bytes, other.bytes], [tally.bytes, tally.bytes])
  other.take(0)
  other.clear()
  one.clear()
  assert.equal(tally.bytes, 0)
})
