import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiPaths } from '../config/api-paths.ts'
import { routes } from './routes.ts'
import type { AgentView } from './types.ts'

test('every path of the API is one that the configuration keeps the metrics from', () => {
  const all = routes({} as AgentView, '/own-metrics', () => ({ healthy: true }))
  for (const path of all.keys()) assert.ok(path === '/own-metrics' || apiPaths.has(path), path)
  assert.ok(all.size > 5)
})
