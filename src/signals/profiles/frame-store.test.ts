import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrameStore } from './frame-store.ts'
import type { NamedStacks } from './messages.ts'

function named(epoch: number, hash: number, name: string): NamedStacks {
  const frame = { name, systemName: '', file: '', line: 0, type: 'native', address: -1, mapping: -1 } as const
  const user = [{ hash, frames: Uint32Array.of(0) }]
  return { epoch, mappings: [], frames: [frame], user, kernel: [] }
}

const name = (store: FrameStore, hash: number) => store.userStack(hash)[0]!.name

test('what was told before all was forgotten is known until nobody asks for it any more', () => {
  const store = new FrameStore()
  store.add(named(0, 1, 'early'))
  store.clear(1)
  store.add({ ...named(0, 2, ''), frames: [] }) // was on its way
  store.add(named(1, 3, 'late'))
  assert.deepEqual(
    [1, 2, 3].map(hash => name(store, hash)),
    ['early', 'early', 'late'],
  )
  store.add(named(1, 1, 'again'))
  store.forget()
  assert.match(name(store, 2), /^\[lost/)
  store.add(named(0, 4, 'too late'))
  assert.match(name(store, 4), /^\[lost/)
  assert.equal(name(store, 3), 'late')
})
