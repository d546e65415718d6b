import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Owner } from './fair-share.ts'
import { SharedBucket } from './shared-bucket.ts'

const seconds = 20
const perSecond = 1000

/** Tokens a second that each owner gets who asks for so many a second, after the first two seconds. */
function shares(
  ...asks: readonly (readonly [owner: Owner | ((n: number) => Owner), perSecond: number])[]
): number[] {
  const bucket = new SharedBucket(perSecond)
  const got = asks.map(() => 0)
  const asked = asks.map(() => 0)
  for (let ms = 0; ms < seconds * 1000; ms++)
    for (const [i, [owner, rate]] of asks.entries())
      for (; asked[i]! < (rate * ms) / 1000; asked[i]!++) {
        const who = typeof owner === 'function' ? owner(asked[i]!) : owner
        if (bucket.take(who, ms) && ms >= 2000) got[i]!++
      }
  return got.map(count => count / (seconds - 2))
}

const ann: Owner = { group: 'ann.slice', user: '1001' }
const eve: Owner = { group: 'eve.slice', user: '1002' }

test('one alone gets everything', () => {
  const [got] = shares([eve, 5000])
  assert.ok(got! > 0.98 * perSecond && got! < 1.01 * perSecond, `${got}`)
})

test('whoever wants little gets it all beside one that wants more than there is, which gets the rest', () => {
  const [little, much] = shares([ann, 50], [eve, 20_000])
  assert.ok(little! > 49.9, `${little}`)
  assert.ok(much! > 0.98 * (perSecond - 50), `${much}`)
})

test('those who want most get the same', () => {
  const [a, b] = shares([ann, 3000], [eve, 30_000])
  assert.ok(Math.abs(a! - b!) < 0.1 * perSecond, `${a} ${b}`)
  assert.ok(a! + b! > 0.97 * perSecond, `${a} ${b}`)
})

test('users of one group share what the group has, however many they are', () => {
  const [little, much] = shares([ann, 50], [n => ({ group: 'eve.slice', user: String(n % 6000) }), 20_000])
  assert.ok(little! > 49.9, `${little}`)
  assert.ok(much! > 0.9 * (perSecond - 50), `${much}`)
})

test('no number of groups makes it forget who has had much, or grow', () => {
  const [little] = shares([ann, 20], [n => ({ group: `${n % 9000}`, user: '1' }), 10_000], [eve, 10_000])
  assert.ok(little! > 10, `${little}`)
})

test('outside of all groups each user is one', () => {
  const users = (group: string) =>
    shares([{ group, user: '1' }, 3000], [{ group, user: '2' }, 3000], [eve, 3000])
  const [one, two, other] = users('')
  assert.ok(Math.abs(one! - other!) < 0.1 * perSecond && Math.abs(two! - other!) < 0.1 * perSecond)
  const [half, , whole] = users('ann.slice')
  assert.ok(half! < 0.8 * whole!, `${half} ${whole}`)
})
