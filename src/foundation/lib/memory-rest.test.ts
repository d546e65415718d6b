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
  assert.deepEqual(dues(rest, 0, 400, 0.05, 50, 50), [5, 45, 125], 'what only the start needed')
  assert.deepEqual(dues(rest, 460, 15, 0.05, 120, 90), [460])
  // Tables let go of the rest later.
  assert.deepEqual(dues(rest, 475, 10, 0.05, 90, 60), [480])
  assert.deepEqual(dues(rest, 485, 30, 0.05, 60, 51), [500])
  assert.deepEqual(dues(rest, 515, 600, 0.05, 52, 51), [520, 560, 640])
  assert.deepEqual(dues(rest, 1115, 600, 0.05, 52, 51), [])
})

test('memory that stays taken is not collected again and again', () => {
  const rest = new MemoryRest()
  dues(rest, 0, 10, 0.05, 50, 50)
  assert.deepEqual(dues(rest, 10, 600, 0.05, 120, 119), [25, 45, 85, 165])
})

test('under load collections are a minute apart, however much is taken', () => {
  const rest = new MemoryRest()
  dues(rest, 0, 10, 0.9, 50, 50)
  const found: number[] = []
  for (let at = 10; at < 310; at += 10) found.push(...dues(rest, at, 10, 0.9, 120, 60))
  assert.equal(found.length, 5)
})
