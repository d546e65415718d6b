import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodedSpan } from '../../../test/helpers/encoded-span.ts'
import { loadConfig } from '../../config/index.ts'
import { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import { resource } from '../../foundation/model/resource.ts'
import { Span, SpanKind } from '../../foundation/model/span.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { guarded, LiveWindow } from './window.ts'

test('a fault in keeping something ends that, is told once, and reaches nobody else', () => {
  const told: string[] = []
  const kept: string[] = []
  const keep = guarded(
    { error: message => told.push(message) },
    'traces',
    (first: string, second: string) => {
      if (first === 'bad') throw new Error('it cannot be kept')
      kept.push(first + second)
    },
  )
  keep('a', '1')
  keep('bad', '2')
  keep('b', '3')
  assert.deepEqual(kept, ['a1'])
  assert.equal(told.length, 1)
  assert.match(told[0]!, /stopped keeping traces/)
})

test('where memory is short the page forgets, keeps nothing new, and goes on when memory is there again', () => {
  const reading = { liveHeapBytes: 0, usedHeapBytes: 0, anonymousBytes: 0 }
  const governor = new MemoryGovernor({ tablesBytes: 1e9, heapBytes: 1000, processBytes: 1e9 }, () => reading)
  const watchers = new Map<string, (resource: unknown, item: unknown, encoded: unknown) => void>()
  const watchEncoded = ((signal: string, watcher: (resource: unknown, item: unknown) => void) => {
    watchers.set(signal, watcher)
  }) as Pipeline['watchEncoded']
  const watch = (() => () => undefined) as Pipeline['watch']
  const { config } = loadConfig({ explicit: false, env: {} })
  const window = new LiveWindow(config, { watch, watchEncoded }, { error: assert.fail }, governor)
  const shop = resource({ 'service.name': 'shop' })
  const see = (spans: number) => {
    for (let i = 0; i < spans; i++) {
      const span = Object.assign(new Span(), { kind: SpanKind.server, name: `GET /${i}`, endUs: 1000 })
      watchers.get('traces')!(shop, span, encodedSpan(span))
    }
  }
  const look = (liveHeapBytes: number) => {
    reading.liveHeapBytes = liveHeapBytes
    governor.look()
  }
  see(5000)
  const { kept } = window.spans
  assert.ok(kept > 1000, `${kept}`)
  look(900)
  assert.equal(window.spans.kept, 0)
  see(10)
  assert.equal(window.spans.kept, 0)
  look(0)
  see(10)
  assert.equal(window.spans.kept, 10)
})
