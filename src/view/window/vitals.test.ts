import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Vitals } from './vitals.ts'

/** Vitals by a clock of the test, with so many seconds: CPU time rises by one each. */
function after(seconds: number, windowMs = 900_000, maxBytes = 1 << 20) {
  const clock = { ms: 5_000_400 }
  const vitals = new Vitals({ windowMs, maxBytes, now: () => clock.ms })
  for (let i = 0; i < seconds; i++) {
    if (i > 0) clock.ms += 1000
    vitals.begin()
    vitals.set('cpuUser', i)
    vitals.set('memoryUsed', i * 1e9)
  }
  return { clock, vitals }
}

const index = (vitals: Vitals, label: string) => vitals.series.findIndex(line => line.label === label)

test('the past ends before the second that is asked for, and the values of that second follow it', () => {
  const { vitals } = after(5)
  const { fromMs, stepMs, values } = vitals.past(vitals.newest, 900, 900)
  assert.equal(stepMs, 1000)
  assert.deepEqual(values[index(vitals, 'user')], [0, 1, 2, 3])
  assert.deepEqual(
    values[index(vitals, 'iowait')],
    [null, null, null, null],
    'what was not told is not known',
  )
  assert.equal(vitals.values(vitals.newest)[index(vitals, 'user')], 4)
  // The clock may step from one call to the other.
  assert.ok(Math.abs(vitals.timeOf(vitals.newest) - fromMs - 4000) < 100)
  assert.equal(values.length, vitals.series.length)
  assert.deepEqual(vitals.past(vitals.newest, 2, 900).values[index(vitals, 'user')], [2, 3])
})

test('of a long past there are means, and values that nobody knows are not counted', () => {
  const { vitals, clock } = after(20)
  const { stepMs, values } = vitals.past(vitals.newest + 1, 900, 5)
  assert.equal(stepMs, 4000)
  assert.deepEqual(values[index(vitals, 'user')], [1.5, 5.5, 9.5, 13.5, 17.5])
  clock.ms += 3000
  vitals.begin()
  vitals.set('cpuUser', 100)
  assert.equal(vitals.mean('cpuUser', 4), (19 + 100) / 2, 'of two of the four seconds something is known')
  assert.equal(vitals.mean('cpuSteal', 4), Number.NaN)
})

test('there is no past before the first second', () => {
  const { vitals } = after(0)
  assert.equal(vitals.newest, -1)
  const { values } = vitals.past(vitals.newest, 900, 900)
  assert.ok(values.every(line => line.length === 0))
  assert.ok(vitals.values(vitals.newest).every(value => value === null))
})

test('a window that does not fit its memory is shorter', () => {
  const { vitals } = after(3000, 86_400_000, 200_000)
  assert.ok(vitals.bytes <= 200_000, String(vitals.bytes))
  assert.ok(vitals.seconds > 1900, String(vitals.seconds))
  const [line] = vitals.past(vitals.newest + 1, 86_400, 86_400).values
  assert.equal(line!.length, vitals.seconds)
  assert.equal(line!.at(-1), 2999)
  assert.equal(after(1).vitals.seconds, 900)
})
