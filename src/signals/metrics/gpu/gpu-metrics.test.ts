import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gpuMetrics } from './gpu-metrics.ts'

const page = readFileSync(new URL('../../../../docs/gpu.md', import.meta.url), 'utf8')
const kinds = { gauge: 'gauge', counter: 'counter', updowncounter: 'up-down counter' }

test('the page about GPUs has each metric with its kind, its unit and the attribute that it is told by', () => {
  const rows = [...page.matchAll(/^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \|$/gm)]
  const told = rows.map(([, name, kind, text]) => ({ name, kind, text }))
  const metrics = Object.entries(gpuMetrics)
  assert.deepEqual(
    told.map(({ name, kind }) => [name, kind]),
    metrics.map(([name, { kind, unit }]) => [name, `${kinds[kind]}, ${unit}`]),
  )
  for (const [at, [name, { extras }]] of metrics.entries())
    for (const { key } of Object.values(extras)) assert.ok(told[at]!.text!.includes(`\`${key}\``), name)
})
