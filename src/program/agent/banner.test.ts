import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { queue } from '../subsystems/queue.ts'
import { scraping } from '../subsystems/scraping.ts'
import { banner } from './banner.ts'
import type { State } from './subsystem.ts'

const loaded = loadConfig({ explicit: false, cwd: '/nonexistent', systemFile: '/nonexistent', env: {} })

test('what does not run has failed, with one line, and is limited where it runs with a fault', () => {
  const check = (state: State, want: readonly (readonly [state: string, detail: string])[]) => {
    const subsystem = { name: 'x', banner: 'always', create: () => undefined } as const
    const lines = banner([{ subsystem, state }], loaded)
    assert.deepEqual(
      lines.map(({ state: shown, detail }) => [shown, detail]),
      want,
    )
  }
  const [fault] = [{ subsystem: 'x', reason: 'no room', hint: 'make room' }]
  const works = ['ok', 'works'] as const
  check({ state: 'ok', detail: 'works' }, [works])
  check({ state: 'ok', detail: 'works', faults: [fault] }, [works, ['limited', 'no room']])
  check({ state: 'ok', detail: 'works', faults: [{ ...fault, fails: 'otlp' }] }, [
    works,
    ['failed', 'no room'],
  ])
  check({ state: 'failed', detail: 'works', faults: [fault] }, [['failed', 'no room']])
})

test('a disk queue that is not there has one line, and so have targets that nobody scrapes', () => {
  const { config } = loaded
  const reason = 'the disk is read-only'
  const pipelines = { store: reason, endpoint: 'h:4317' } as unknown as Parameters<
    NonNullable<typeof queue.state>
  >[0]
  const standing = [{ subsystem: queue as never, state: queue.state!(pipelines, config) }]
  const lines = banner(standing, loaded).map(({ state, name, detail }) => [state, name, detail])
  assert.deepEqual(lines, [['failed', 'queue', reason]])
  const own = {
    isOn: true,
    faults: [{ subsystem: 'scraping', reason, hint: '' }],
    size: { jobs: 0, targets: 0 },
  }
  const state = scraping.state!(own as unknown as Parameters<NonNullable<typeof scraping.state>>[0], config)
  const [line, ...more] = banner([{ subsystem: scraping as never, state }], loaded)
  assert.deepEqual([line?.state, line?.detail, more], ['failed', reason, []])
})
