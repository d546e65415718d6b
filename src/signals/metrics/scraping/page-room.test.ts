import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PageHolder, PageRoom } from './page-room.ts'

test('targets hold no more than all may together, and one no more than half of it', () => {
  const room = new PageRoom(100)
  const [one, two, three] = [holder(), holder(), holder()]
  assert.equal(room.hold(one, 51), false)
  assert.equal(room.hold(one, 50), true)
  assert.equal(room.hold(two, 40), true)
  assert.equal(room.hold(three, 11), false)
  assert.equal(room.bytes, 90)
  assert.equal(room.hold(one, 20), true, 'less is always possible')
  assert.equal(room.hold(three, 11), true)
  room.leave(two)
  room.leave(two)
  assert.equal(room.bytes, 31)

  function holder(): PageHolder {
    return { shed: () => undefined }
  }
})

test('those that hold most give back first', () => {
  const room = new PageRoom()
  const asked: string[] = []
  const open = (name: string, bytes: number) => {
    const holder: PageHolder = {
      shed: () => {
        asked.push(name)
        room.hold(holder, bytes / 2)
      },
    }
    room.hold(holder, bytes)
  }
  open('small', 10)
  open('large', 100)
  open('middle', 40)
  assert.equal(room.shed(60), 70)
  assert.deepEqual(asked, ['large', 'middle'])
  assert.equal(room.bytes, 80)
})
