import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryRest } from './memory-rest.ts'

const Mi = 1024 * 1024

/** Looks twice a second for so many seconds; returns the seconds at which a collection was due. */
function dues(
  rest: MemoryRest,
  from: number,
  seconds: number,
  cpu: number,
  anonymousMi: number,
  leftMi: number,
) {
  const found: number[] = []
  let anonymousBytes = anonymousMi * Mi
  for (let at = from; at < from + seconds; at += 0.5) {
    if (
      rest.due({ nowMs: at * 1000, busyMs: at * 1000 * cpu, anonymousBytes }) !==
      (cpu < 0.2 ? 'quiet' : 'busy')
    )
      continue
    found.push(at)
    anonymousBytes = leftMi * Mi
    rest.done({ nowMs: at * 1000, anonymousBytes })
  }
  return found
}

test('after a burst memory is collected as soon as there is little to do, and while that gives some back', () => {
  const rest = new MemoryRest()
  assert.deepEqual(dues(rest, 0, 60, 0.05, 50, 50), [], 'nothing was taken')
  assert.deepEqual(dues(rest, 60, 15, 0.05, 120, 90), [60])
  // Tables let go of the rest later.
  assert.deepEqual(dues(rest, 75, 10, 0.05, 90, 60), [80])
  assert.deepEqual(dues(rest, 85, 30, 0.05, 60, 51), [100])
  assert.deepEqual(dues(rest, 115, 600, 0.05, 52, 51), [120, 160, 240])
  assert.deepEqual(dues(rest, 715, 600, 0.05, 52, 51), [])
})

test('memory that stays taken is not collected again and again', () => {
  const rest = new MemoryRest()
  dues(rest, 0, 10, 0.05, 50, 50)
  assert.deepEqual(dues(rest, 10, 600, 0.05, 120, 119), [10, 30, 70, 150])
})

test('under load collections are a minute apart, however much is taken', () => {
  const rest = new MemoryRest()
  dues(rest, 0, 10, 0.9, 50, 50)
  const found: number[] = []
  for (let at = 10; at < 310; at += 10) found.push(...dues(rest, at, 10, 0.9, 120, 60))
  assert.equal(found.length, 5)
})
