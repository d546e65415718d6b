import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaults } from '../../config/index.ts'
import type { Logs } from '../agent/logs.ts'
import { logs } from './logs.ts'

test('whoever asks how logs are does not have all of them looked at', () => {
  const own = {
    isOn: true,
    faults: [],
    counts: { files: 3, paused: true, records: new Map(Object.entries({ cri: 4, journal: 5 })) },
    get status(): never {
      throw new Error('all logs were looked at')
    },
  }
  const { detail, pause, items, facts } = logs.state!(own as unknown as Logs, defaults())
  assert.match(detail!, /; 3 files so far$/)
  assert.match(pause!, /^paused until/)
  assert.equal(items, 9)
  assert.throws(() => facts!(), /all logs/)
})
