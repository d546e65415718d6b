import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../../../test/helpers/api-server.ts'
import { call } from '../../../test/helpers/http.ts'
import { apiPaths, isApiPath } from '../../config/api-paths.ts'
import { profileKinds } from '../../foundation/runtime/runtime-profiler.ts'
import { subsystems } from '../../program/subsystems/index.ts'
import { openapi } from './openapi.ts'
import { operations } from './routes.ts'
import type { Schema } from './schema.ts'
import type { AgentView } from './types.ts'

const pages = subsystems.flatMap(subsystem => subsystem.pages ?? [])
const view = {
  profiles: profileKinds,
  pages,
  ui: {},
  browsers: {},
  pageDirectory: '',
} as unknown as AgentView

test('every path of the API is one that the configuration keeps the metrics from, and the other way round', () => {
  const all = operations(view, '/own-metrics')
  for (const { path } of all) assert.ok(path === '/own-metrics' || isApiPath(path), path)
  for (const path of apiPaths)
    assert.ok(
      all.some(each => each.path === path),
      path,
    )
  assert.ok(all.length > 20)
})

/** What the specification names, and what describes it. */
const forAnybody = ['/metrics', '/openapi.json', '/config'].concat(
  '/status',
  '/status/ebpf',
  '/status/export',
  '/status/discovery',
)

test('all but the documents of the specification is private, and debug paths are those below /debug', () => {
  for (const { path, access, debug, tag, isFile } of operations(view, '/metrics')) {
    const below = (root: string) => path.startsWith(`${root}/`)
    const isEntry = path === '/ui/session'
    assert.equal(access === 'public', forAnybody.includes(path), path)
    assert.equal(debug === true, below('/debug'), path)
    assert.equal(access === 'open', tag === 'probes' || isFile === true || isEntry, path)
    assert.equal(isFile === true, path === '/ui' || (below('/ui') && !below('/ui/api') && !isEntry), path)
  }
})

test('what is not well, or not ready, is 503 at each of its paths, with the reason', async t => {
  const health = { healthy: false, reason: 'the event loop stood still for 40 s' }
  const checks = { ebpf: 'failed: no BTF', otlp: 'ok', discovery: 'ok' }
  const sick = {
    ...view,
    health: () => health,
    readiness: () => checks,
    warnings: () => [],
  } as unknown as AgentView
  const { api } = await serve(t, {}, { operations: operations(sick, '/metrics') })
  for (const path of ['/healthz', '/livez']) {
    const { status, body } = await call(api.port, path)
    assert.deepEqual(
      [status, JSON.parse(String(body))],
      [503, { status: 'unhealthy', reason: health.reason }],
    )
  }
  for (const path of ['/ready', '/readyz']) {
    const { status, body } = await call(api.port, path)
    assert.deepEqual([status, JSON.parse(String(body))], [503, { status: 'not_ready', checks }])
  }
})

test('no two shapes of the description have one name', () => {
  const named = new Map<string, string>()
  const check = ({ name, json, parts = [] }: Schema<unknown>) => {
    const text = JSON.stringify(json)
    if (name !== undefined) assert.equal(named.get(name) ?? text, text, name)
    if (name !== undefined) named.set(name, text)
    for (const part of parts) check(part)
  }
  for (const { outcomes } of operations(view, '/metrics'))
    for (const { content } of Object.values(outcomes))
      for (const shape of Object.values(content)) if (shape !== undefined) check(shape)
  assert.ok(named.size > 20)
})

test('every reference of the description resolves', () => {
  const description = openapi(operations(view, '/metrics'))
  const found = [...JSON.stringify(description).matchAll(/"\$ref":"#\/([^"]+)"/g)]
  assert.ok(found.length > 100)
  for (const [, path] of found) {
    let node: unknown = description
    for (const step of path!.split('/')) node = (node as Record<string, unknown>)[step]
    assert.equal(typeof node, 'object', path)
  }
})

test('a metrics path that cannot be one is refused', () => {
  assert.throws(() => operations(view, 'metrics'), /a path starts with \//)
  assert.throws(() => operations(view, '/a b'), /a path starts with \//)
})
