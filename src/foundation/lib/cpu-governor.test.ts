import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CpuGovernor, type CpuLever } from './cpu-governor.ts'

/** A part whose cost halves with each step. */
class Part implements CpuLever {
  steps = 0
  #ms = 0
  readonly name: string
  readonly full: number
  readonly most: number

  constructor(name: string, full: number, most = 3) {
    this.name = name
    this.full = full
    this.most = most
  }

  get cores(): number {
    return this.full / 2 ** this.steps
  }

  get effect(): string {
    return this.steps === 0 ? '' : `${this.name} at 1/${2 ** this.steps}`
  }

  second(): void {
    this.#ms += this.cores * 1000
  }

  costMs(): number {
    return this.#ms
  }

  lower(): boolean {
    if (this.steps === this.most) return false
    this.steps++
    return true
  }

  raise(): boolean {
    this.steps--
    return true
  }
}

/** Seconds of an agent of these parts, and what was changed when. */
function run(governor: CpuGovernor, parts: readonly Part[], seconds: number, rest = 0.1): string[] {
  const changes: string[] = []
  for (let second = 0; second < seconds; second++) {
    for (const part of parts) part.second()
    const change = governor.look(parts.reduce((sum, { cores }) => sum + cores, rest))
    if (change !== undefined) changes.push(`${change.lowered ? '-' : '+'}${change.name}`)
  }
  return changes
}

function governed(limit: number, ...parts: Part[]): CpuGovernor {
  const governor = new CpuGovernor(limit)
  for (const part of parts) governor.register(part.name, part)
  return governor
}

test('below the limit nothing is lowered', () => {
  const part = new Part('spans', 0.3)
  assert.deepEqual(run(governed(0.5, part), [part], 1000), [])
})

test('what costs most does less first, step by step, until the whole is within the limit', () => {
  const [spans, profiles] = [new Part('spans', 0.9), new Part('profiles', 0.4)]
  const governor = governed(0.5, spans, profiles)
  // 1.4, 0.95, 0.73; then profiles cost 0.4, spans 0.225.
  assert.deepEqual(run(governor, [spans, profiles], 60), ['-spans', '-spans', '-profiles', '-spans'])
  assert.deepEqual(governor.lowered, [
    { name: 'spans', steps: 3, effect: 'spans at 1/8' },
    { name: 'profiles', steps: 1, effect: 'profiles at 1/2' },
  ])
  assert.ok(spans.cores + profiles.cores + 0.1 <= 0.5)
})

test('a part that can do no less leaves it to the next', () => {
  const [spans, profiles] = [new Part('spans', 0.9, 1), new Part('profiles', 0.2)]
  assert.deepEqual(run(governed(0.5, spans, profiles), [spans, profiles], 120), [
    '-spans',
    '-profiles',
    '-profiles',
    '-profiles',
  ])
})

test('a load that is gone brings back all, the last step first', () => {
  const spans = new Part('spans', 1.6)
  const governor = governed(0.5, spans)
  assert.deepEqual(run(governor, [spans], 40), ['-spans', '-spans'])
  const quiet = new Part('none', 0)
  assert.deepEqual(run(governor, [quiet], 200), ['+spans', '+spans'])
  assert.deepEqual([spans.steps, governor.lowered], [0, []])
})

test('a step back that leads above the limit again makes the next one wait twice as long', () => {
  const spans = new Part('spans', 0.6)
  const governor = governed(0.5, spans)
  // Lowered it takes 0.3, which is well below 0.5: it is tried again and again, less and less often.
  const none = run(governor, [spans], 3600, 0)
  assert.ok(none.length >= 6 && none.length <= 20, none.join(' '))
})

test('between calm and limit nothing changes, and a moment of much to do does nothing', () => {
  const spans = new Part('spans', 0.7)
  const governor = governed(0.5, spans)
  run(governor, [spans], 15, 0.1)
  assert.equal(spans.steps, 1)
  for (let second = 0; second < 600; second++)
    assert.equal(governor.look(second % 20 === 0 ? 0.65 : 0.4), undefined)
})
