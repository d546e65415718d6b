import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { Turns } from './turns.ts'

test('one answer is made in a turn of the loop, and who asks for many does not keep the others waiting', async () => {
  const turns = new Turns()
  const made: string[] = []
  const ask = (client: string, what: string) =>
    turns.make(
      () => client,
      () => made.push(what),
    )
  assert.equal(ask('one', 'a'), 1)
  const asked = [ask('one', 'b'), ask('one', 'c'), ask('one', 'd'), ask('other', 'e'), ask('other', 'f')]
  assert.deepEqual(made, ['a'])
  await turn()
  assert.equal(made.length, 2)
  await Promise.all(asked)
  assert.deepEqual(made, ['a', 'b', 'e', 'c', 'f', 'd'])
  // Nobody waits where nothing is asked for.
  await turn()
  await turn()
  assert.equal(ask('one', 'g'), 7)
})

test('who asks for too many is not answered, and others are', async () => {
  const turns = new Turns()
  const ask = (client: string) =>
    turns.make(
      () => client,
      () => client,
    )
  const asked = Array.from({ length: 2_000 }, () => ask('one'))
  assert.equal(asked.filter(each => each === undefined).length, 2_000 - 1 - 1_024)
  assert.equal(await ask('other'), 'other')
  await Promise.all(asked)
  assert.equal(await ask('one'), 'one')
})

test('answers wait while connections come, for a bounded time', async () => {
  const turns = new Turns()
  turns.accepted()
  let made = false
  const asked = turns.make(
    () => 'one',
    () => {
      made = true
    },
  )
  await turn()
  assert.ok(!made)
  await asked
  const began = performance.now()
  let goesOn = true
  const more = (): void => {
    turns.accepted()
    if (goesOn) setImmediate(more)
  }
  more()
  await turns.make(
    () => 'one',
    () => undefined,
  )
  goesOn = false
  assert.ok(performance.now() - began >= 49)
})

test('an answer that fails is its own failure', async () => {
  const turns = new Turns()
  const fail = () => {
    throw new Error('no answer')
  }
  assert.throws(() => turns.make(() => 'one', fail), /no answer/)
  await assert.rejects(async () => turns.make(() => 'one', fail), /no answer/)
  assert.equal(
    await turns.make(
      () => 'one',
      () => 1,
    ),
    1,
  )
})
