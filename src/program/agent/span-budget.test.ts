import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kernelOperation } from '../../../test/helpers/kernel-operation.ts'
import { CpuGovernor } from '../../foundation/lib/cpu-governor.ts'
import { WallClock } from '../../foundation/lib/wall-clock.ts'
import { hostOwner } from '../../foundation/model/resource.ts'
import type { CaptureRules } from '../../signals/capture/capture.ts'
import { SpanBudget } from './span-budget.ts'

/** With what the kernel side was told, and a way to let spans come. */
function budget(maxPerSecond: number, hasBudget = true) {
  const applied: number[] = []
  let spans = 0
  let nowMs = 0
  const rules: CaptureRules = {
    ...{ includePorts: [], excludePorts: [], maxPerSecond },
    ...{ alwaysErrors: true, alwaysSlow: true, slowNs: 1 },
  }
  const made = new SpanBudget({
    capture: { hasBudget, busyMs: 0, apply: told => applied.push(told.maxPerSecond) },
    clock: new WallClock(),
    rules,
    counted: new Set(['redis']),
    spans: () => spans,
    sync: () => undefined,
    now: () => nowMs,
    wall: () => nowMs,
  })
  const come = (perSecond: number) => {
    nowMs += 5_000
    spans += perSecond * 5
    made.measure()
  }
  return { made, applied, rules, come }
}

test('each step halves what is made, not what is allowed, down to some spans a second', () => {
  const { made, applied, come } = budget(1000)
  come(900)
  while (made.lower());
  assert.deepEqual(applied, [450, 225, 200])
  assert.deepEqual([made.lowered, made.reason], [200, 'cpu_limit'])
})

test('steps back are those down, the last one first', () => {
  const { made, applied, come } = budget(1000)
  come(8000)
  assert.ok(made.lower() && made.lower())
  come(10)
  while (made.raise());
  assert.deepEqual(applied, [500, 250, 500, 1000])
  assert.deepEqual([made.lowered, made.reason], [undefined, 'over_budget'])
})

test('without a bound in the configuration it begins with what comes', () => {
  const { made, applied, come } = budget(0)
  come(8000)
  assert.ok(made.lower())
  while (made.raise());
  assert.deepEqual(applied, [4000, 0])
})

test('a reload keeps it lowered, and one that asks for less is obeyed', () => {
  const { made, applied, rules, come } = budget(1000)
  come(1000)
  made.lower()
  made.change({ ...rules, maxPerSecond: 5000 })
  made.change({ ...rules, maxPerSecond: 300 })
  assert.deepEqual(applied, [500, 500, 300])
  made.raise()
  assert.deepEqual([made.lowered, applied.at(-1)], [undefined, 300])
})

test('governor and budget agree at every step, whatever comes', () => {
  const { made, applied, come } = budget(20_000)
  const governor = new CpuGovernor(0.5)
  let ms = 0
  governor.register('spans', {
    costMs: () => ms,
    lower: () => made.lower(),
    raise: () => made.raise(),
    get effect() {
      return made.lowered === undefined ? '' : `${made.lowered} spans`
    },
  })
  const agree = (seconds: number, spans: number, cores: number) => {
    for (let second = 0; second < seconds; second++) {
      ms += 500
      if (second % 5 === 0) come(spans)
      governor.look(cores)
      assert.equal(governor.lowered.length > 0, made.lowered !== undefined)
    }
  }
  agree(120, 16_000, 0.9)
  assert.ok(made.lowered !== undefined && made.lowered < 4000)
  agree(900, 1000, 0.1)
  assert.deepEqual([made.lowered, applied.at(-1)], [undefined, 20_000])
})

test('a host with few spans cannot make fewer', () => {
  const few = budget(200)
  few.come(1000)
  assert.equal(few.made.lower(), false)
})

const calls = {
  http: ['http', false],
  tls: ['http', true],
  redis: ['redis', true],
  http2: ['http2', true],
} as const

/** How many of so many calls at once may have spans. */
function allowed(made: SpanBudget, kind: keyof typeof calls, n: number, error = '', durationNs = 1): number {
  const [protocol, fromBytes] = calls[kind]
  const operation = kernelOperation({ protocol, fromBytes, startNs: 1e15, durationNs })
  operation.call.error = error
  let count = 0
  for (let i = 0; i < n; i++) count += Number(made.allows(operation, hostOwner))
  return count
}

test('of a batch those that came later find what came to the budget meanwhile', () => {
  const { made, come } = budget(1000, false)
  const [flood, quiet] = [
    { group: 'a', user: '1' },
    { group: 'a', user: '2' },
  ]
  const judge = (atMs: number, owner: typeof flood) =>
    made.allows(
      kernelOperation({ protocol: 'http', fromBytes: true, startNs: atMs * 1e6, durationNs: 1 }),
      owner,
    )
  const refused: number[] = []
  for (let batch = 0; batch < 8; batch++) {
    come(0) // five seconds later
    for (let at = batch * 5000; at < batch * 5000 + 1000; at++) {
      for (let i = 0; i < 10; i++) judge(at, flood)
      if (at % 20 === 0 && !judge(at, quiet)) refused.push(at)
    }
  }
  assert.deepEqual(refused, [])
})

/** One that is alone leaves a little of a second's budget to whoever comes. */
function isNear(count: number, perSecond: number): void {
  assert.ok(count > 0.85 * perSecond && count <= perSecond, `${count} of ${perSecond}`)
}

test('what the kernel did not judge is judged here, by the same budget for each second', () => {
  const { made, come } = budget(1000)
  const of = (kind: keyof typeof calls) => allowed(made, kind, 1500)
  assert.deepEqual([of('http'), of('redis')], [1500, 1500])
  isNear(of('http2'), 1000)
  assert.equal(of('tls'), 0)
  come(1000)
  made.lower()
  assert.deepEqual([of('http'), of('redis')], [1500, 1500])
  isNear(of('http2'), 500)
  assert.match(made.effect, /^at most 500 spans per second, and as many again for HTTP\/2/)
})

test('without a budget in the kernel all calls are judged here', () => {
  const { made } = budget(1000, false)
  isNear(allowed(made, 'http', 600) + allowed(made, 'redis', 600) + allowed(made, 'http2', 600), 1000)
})

test('failed and slow calls have a budget of their own, and without a bound nothing is refused', () => {
  const { made } = budget(100)
  isNear(allowed(made, 'http2', 200), 100)
  isNear(allowed(made, 'http2', 60, 'timeout') + allowed(made, 'http2', 60, '', 2), 100)
  assert.equal(allowed(budget(0).made, 'http2', 5000), 5000)
})
