import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaults } from '../../config/index.ts'
import type { State, Subsystem } from '../agent/subsystem.ts'
import { subsystems } from '../subsystems/index.ts'
import { pipelineSources } from './pipeline-sources.ts'

test('counts of the host by eBPF have a place in the graph where they fail, and nowhere else', () => {
  const hostCounts = subsystems.find(({ name }) => name === 'host metrics by eBPF')!
  const check = (own: unknown, config: object, want: readonly string[]) => {
    const state: State = hostCounts.state!(own, { ...defaults(), ...config })
    const found = pipelineSources({ states: () => [{ subsystem: hostCounts, state }] })
    const shown = found.map(({ node }) => node).filter(({ id }) => id !== 'source:metrics')
    assert.deepEqual(
      shown.map(node => `${node.state} ${node.name}: ${node.reason}`),
      want,
    )
  }
  const fault = { subsystem: 'host metrics by eBPF', reason: 'no BTF', hint: 'boot another kernel' }
  check({ failures: [fault] }, {}, ['failed host metrics by eBPF: no BTF: boot another kernel'])
  check({ failures: [] }, {}, [])
  check(undefined, { mode: 'collector' }, [])
})

test('a source is hidden in the states that it names, and shown when it is limited', () => {
  const check = (hidden: readonly ('ok' | 'off')[] | undefined, state: State, want: number) => {
    const subsystem: Subsystem = {
      name: 'x',
      create: () => undefined,
      source: { id: 'x', name: 'x', signal: 'logs', ...(hidden && { hidden }) },
    }
    const found = pipelineSources({ states: () => [{ subsystem, state }] })
    assert.equal(found.filter(({ node }) => node.id === 'source:x').length, want)
  }
  const faults = [{ subsystem: 'x', reason: 'no room', hint: '' }]
  check(undefined, { state: 'off' }, 1)
  check(['off'], { state: 'off' }, 0)
  check(['off'], { state: 'none' }, 0)
  check(['off'], { state: 'ok' }, 1)
  check(['ok', 'off'], { state: 'ok' }, 0)
  check(['ok', 'off'], { state: 'ok', faults }, 1)
  check(['ok', 'off'], { state: 'failed', faults }, 1)
})
