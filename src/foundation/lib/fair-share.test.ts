import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FairShare, type Owner, ownerText } from './fair-share.ts'

/** Things of owners in a room, as a cache keeps them. */
class Room {
  readonly share: FairShare
  readonly held: { readonly owner: Owner; readonly amount: number }[] = []

  constructor(capacity: number) {
    this.share = new FairShare(capacity)
  }

  /** False: refused. `gave`: who gave something up. */
  take(owner: Owner, amount: number, gave: Owner[] = []): boolean {
    while (!this.share.hasRoom(amount)) {
      const from = this.share.giver(owner, amount)
      if (from === undefined) return false
      const at = this.held.findIndex(each => each.owner.group === from.group && each.owner.user === from.user)
      assert.ok(at >= 0, 'whoever is to give has something')
      const [given] = this.held.splice(at, 1)
      this.share.remove(given!.owner, given!.amount)
      gave.push(given!.owner)
    }
    this.share.add(owner, amount)
    this.held.push({ owner, amount })
    return true
  }

  of(group: string, user?: string): number {
    return this.held
      .filter(({ owner }) => owner.group === group && (user === undefined || owner.user === user))
      .reduce((sum, { amount }) => sum + amount, 0)
  }
}

const owner = fc.record({ group: fc.constantFrom('', 'a', 'b'), user: fc.constantFrom('0', '1', '2') })
const same = (a: Owner, b: Owner) => a.group === b.group && a.user === b.user

test('the room is never exceeded, and its counts are what is held', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(owner, fc.integer({ min: 1, max: 40 })), { maxLength: 60 }), wishes => {
      const room = new Room(100)
      for (const [who, amount] of wishes) {
        room.take(who, amount)
        assert.ok(room.share.used <= 100)
        assert.equal(
          room.share.used,
          room.held.reduce((sum, each) => sum + each.amount, 0),
        )
        assert.equal(room.share.usedBy(who), room.of(who.group, who.user))
      }
      for (const { owner: who, amount } of room.held) room.share.remove(who, amount)
      assert.equal(room.share.used, 0)
      assert.equal(room.share.richest(), undefined)
    }),
  )
})

test('places within a fair share are never refused and never given up', () => {
  fc.assert(
    fc.property(fc.array(owner, { maxLength: 300 }), wishes => {
      const room = new Room(36)
      // Three groups of three users: 12 places a group, 4 a user.
      for (const who of wishes) {
        const before = room.of(who.group, who.user)
        const gave: Owner[] = []
        const has = room.take(who, 1, gave)
        if (before < 4) assert.ok(has)
        for (const giver of gave)
          if (!same(giver, who)) {
            // It had more before than who came has now.
            assert.ok(room.of(giver.group) >= 12 || giver.group === who.group)
            assert.ok(
              giver.group !== who.group ||
                room.of(giver.group, giver.user) >= room.of(who.group, who.user) - 1,
            )
          }
      }
    }),
  )
})

test('who fills the room keeps it until another comes, who then gets half, whatever names the first one takes', () => {
  const room = new Room(128)
  for (let i = 0; i < 500; i++) room.take({ group: 'greedy', user: String(i % 50) }, 1)
  assert.equal(room.of('greedy'), 128)
  for (let i = 0; i < 100; i++) room.take({ group: 'quiet', user: '0' }, 1)
  assert.deepEqual([room.of('greedy'), room.of('quiet')], [64, 64])
  // Nothing goes to and fro between them.
  const gave: Owner[] = []
  room.take({ group: 'greedy', user: '51' }, 1, gave)
  assert.ok(gave.every(({ group }) => group === 'greedy'))
  assert.deepEqual([room.of('greedy'), room.of('quiet')], [64, 64])
})

test('what is larger than the room, or than may be taken, is refused', () => {
  const room = new Room(10)
  assert.equal(room.take({ group: 'a', user: '0' }, 11), false)
  for (let i = 0; i < 5; i++) room.take({ group: 'a', user: '0' }, 1)
  for (let i = 0; i < 5; i++) room.take({ group: 'b', user: '0' }, 1)
  assert.equal(room.take({ group: 'c', user: '0' }, 6), false)
  assert.equal(room.held.length, 10)
})

test('where nothing can be taken back nobody gets more than half, and the next always gets something', () => {
  const share = new FairShare(1000)
  const fill = (owner: Owner) => {
    let got = 0
    for (; share.mayGrow(owner, 1); got++) share.add(owner, 1)
    return got
  }
  assert.equal(fill({ group: 'a', user: '0' }), 500)
  // Others of its group, however many, leave a quarter of all.
  assert.equal(fill({ group: 'a', user: '1' }), 100)
  for (let user = 2; user < 50; user++) fill({ group: 'a', user: String(user) })
  assert.ok(share.used > 700 && share.used <= 750)
  const before = share.used
  assert.ok(fill({ group: '', user: '0' }) >= 125)
  assert.ok(fill({ group: '', user: '1' }) >= 62)
  assert.ok(before + 187 <= share.used)
})

test('an owner is named by its user, and by where it runs', () => {
  assert.equal(ownerText({ group: '', user: '1000' }), 'user 1000')
  assert.equal(
    ownerText({ group: '/system.slice/a.service', user: '0' }),
    'user 0 of /system.slice/a.service',
  )
})
