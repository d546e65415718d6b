import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeStages } from './health.ts'

const idle = { traces: 0, metrics: 0, logs: 0, profiles: 0 }

test('stages that move are healthy, and one that is stuck is named', () => {
  const check = (
    sinceDrainMs: number,
    waiting: Partial<typeof idle>,
    batchTimeoutMs: number,
    want: string,
  ) => {
    const { healthy, reason } = judgeStages({
      sinceDrainMs,
      batchingMs: { ...idle, ...waiting },
      batchTimeoutMs,
    })
    assert.deepEqual([healthy, reason ?? ''], [want === '', want])
  }
  check(0, {}, 1000, '')
  check(9_999, { traces: 9_999 }, 1000, '')
  check(12_300, {}, 1000, 'the capture was last drained 12 s ago')
  check(0, { metrics: 10_001 }, 50, 'metrics have been waiting 10 s for their batch')
  check(0, { traces: 10_001 }, 5_000, '')
  check(0, { traces: 50_001 }, 5_000, 'traces have been waiting 50 s for their batch')
})
