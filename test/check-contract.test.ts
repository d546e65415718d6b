// What tools/check-contract.ts sees, by faults that are put in: its own run on this tree is a part of tools/check.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { cpu } from '../src/signals/metrics/collectors/cpu.ts'
import { boundsOf } from '../src/signals/metrics/exposition/bounds.ts'
import { describe } from '../src/signals/metrics/exposition/description.ts'
import { Page } from '../src/signals/metrics/exposition/page.ts'
import { without } from '../tools/check-contract.ts'
import { compare } from '../tools/contract/documents.ts'
import { requiredFacts } from '../tools/contract/facts.ts'
import { unreadKeys } from '../tools/contract/key-reads.ts'
import { type Field, service } from '../tools/contract/spec.ts'
import { Reached } from '../tools/testing/reached.ts'
import { lostFacts, reachedTable } from '../tools/testing/reached-table.ts'
import { call } from './helpers/http.ts'
import { svc } from './helpers/svc.ts'

/** A tree with the language of the schema, and these files. */
function treeOf(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'contract-'))
  t.after(() => rmSync(root, { recursive: true }))
  symlinkSync(join(import.meta.dirname, '../node_modules'), join(root, 'node_modules'))
  const all = {
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        module: 'nodenext',
        allowImportingTsExtensions: true,
        types: [],
      },
      include: ['src'],
    }),
    'src/foundation/schema/tree.ts': `
      export interface Key<T> { readonly default: T }
      export interface Branch<K extends Keys = Keys> { readonly keys: K }
      export interface Keys { readonly [name: string]: Key<unknown> | Branch }
      export type Infer<N> =
        N extends Key<infer T> ? T : N extends Branch<infer K> ? { readonly [P in keyof K]: Infer<K[P]> } : never
      export function key<T>(fallback: T): Key<T> { return { default: fallback } }
      export function branch<const K extends Keys>(keys: K): Branch<K> { return { keys } }
    `,
    ...files,
  }
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  return root
}

test('a key counts as read where its value is taken, however the configuration got there', t => {
  const root = treeOf(t, {
    'src/config/schema.ts': `
      import { branch, type Infer, key } from '../foundation/schema/tree.ts'
      const tls = branch({ ca_file: key(''), cert_file: key('') })
      export const schema = branch({
        size: key(1),
        listen: branch({ port: key(1), host: key(''), unread: key(1), tls }),
        only_checked: key(1),
        only_tested: key(1),
        only_written: key(1),
        other_size: key(1),
      })
      export type Config = Infer<typeof schema>
    `,
    'src/config/validate.ts': `
      import type { Config } from './schema.ts'
      export const check = (config: Config) => config.only_checked > 0
    `,
    'src/a.test.ts': `
      import type { Config } from './config/schema.ts'
      export const check = (config: Config) => config.only_tested
    `,
    'src/a.ts': `
      import type { Config } from './config/schema.ts'
      interface Own { readonly other_size: number; readonly only_written: number }
      export const own = (own: Own) => own.other_size
      export const made: Own = { other_size: 1, only_written: 2 }
      export function use({ size, listen: { port: at, tls: { ca_file } } }: Config): unknown { return [size, at, ca_file] }
      export const host = (listen: Pick<Config['listen'], 'host'> | undefined) => listen?.host
      export const cert = ({ tls }: Config['listen']) => tls['cert_file']
    `,
  })
  assert.deepEqual(
    unreadKeys(root).map(fault => fault.replace(/^\S+ /, '')),
    ['unread', 'only_checked', 'only_tested', 'only_written'].map(name => `no code reads the key "${name}"`),
  )
})

test('a fault that another change fixes waits for it, and not longer', () => {
  const faults = ['exit 5: no test reaches it', 'GET /x 200: no test reaches it']
  assert.deepEqual(without(faults, { 'exit 5': 'item 7' }), [faults[1]])
  const stale = without(faults, { 'exit 3': 'item 6' })
  assert.equal(stale.length, 3)
  assert.match(stale[2]!, /^exit 3: is not a fault any more/)
})

/** What a document lacks of what is promised, by path. */
function missing(field: Field, document: unknown, at = ''): string[] {
  if (Array.isArray(field))
    return Array.isArray(document) && document.length > 0
      ? document.flatMap((each, i) => missing(field[0] as Field, each, `${at}[${i}]`))
      : [`${at}: no list with an item`]
  if (typeof field !== 'string')
    return Object.entries(field).flatMap(([name, below]) =>
      missing(below, (document as Readonly<Record<string, unknown>> | undefined)?.[name], `${at}.${name}`),
    )
  const types: Readonly<Record<string, string>> = { boolean: 'boolean', count: 'number', number: 'number' }
  return typeof document === (types[field] ?? 'string') ? [] : [`${at}: ${typeof document}`]
}

test('the description of the metrics of the host has every field that is promised', () => {
  const bounds = boundsOf({
    enabled: false,
    max_metrics: 0,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: [],
  })
  const page = new Page({ namespace: 'node', bounds })
  const document = describe({ namespace: 'node', collectors: [cpu], page, sources: [], bounds, version: '1' })
  assert.deepEqual(missing(service.documents.description!, document), [])
  assert.deepEqual(missing({ total: 'text', categories: [{ gone: 'count' }] }, document), [
    '.total: number',
    '.categories[0].gone: undefined',
  ])
})

test('a field with other words than the promised ones is a fault', () => {
  const check = (field: Field, shape: Readonly<Record<string, unknown>>, want: readonly string[]) => {
    const faults: string[] = []
    compare(field, shape, 'x', new Map(), faults)
    assert.deepEqual(faults, want)
  }
  check('ready|not_ready', { type: 'string', enum: ['not_ready', 'ready'] }, [])
  check('ok', { const: 'ok' }, [])
  check('ok', { type: 'string', enum: ['ok', 'no'] }, ['x: promised as ok, but is no|ok'])
  check('a|b', { type: 'string', enum: ['a'] }, ['x: promised as a|b, but is a'])
  check('a|b', { type: 'string' }, ['x: promised as a|b, but is any text'])
  check('a|b', { type: 'integer' }, ['x: promised as a|b, but is integer'])
  check('text', { type: 'string', enum: ['a'] }, [])
})

test('what is required is named once, and the table has nothing else', () => {
  const required = requiredFacts()
  assert.ok(required.length > 150, String(required.length))
  assert.deepEqual(
    required.filter((fact, i) => required.indexOf(fact) !== i),
    [],
  )
  assert.ok(Object.keys(reachedTable()).every(fact => required.includes(fact)))
})

test('a file that reaches no more what the table says fails, unless the host lacks what its tests need', () => {
  const [fact, file] = Object.entries(reachedTable())[0]!
  const own = Object.entries(reachedTable()).filter(([, by]) => by === file)
  const result = (
    reached: readonly string[],
    reason = '',
    how: 'passed' | 'skipped' | 'failed' = 'passed',
  ) => ({
    file,
    tests: [{ name: 't', ms: 1, result: how, reason }],
    faults: [],
    reached,
  })
  assert.deepEqual(lostFacts(result(own.map(([each]) => each))), [])
  const lost = lostFacts(result(own.map(([each]) => each).filter(each => each !== fact)))
  assert.equal(lost.length, 1)
  assert.ok(lost[0]!.includes(`"${fact}"`))
  assert.deepEqual(lostFacts(result([], 'needs root', 'skipped')), [])
  assert.deepEqual(lostFacts(result([], 'boom', 'failed')), [])
  assert.equal(lostFacts(result([], 'tried by `npm run soak`', 'skipped')).length, own.length)
})

test('answers, metrics, exit codes and messages are seen, and only those of svc', async t => {
  const own = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
  const page = 'svc_a_total 1\nsvc_b_total 0\nsvc_c_bucket{le="1"} 0\nsvc_c_count 3\nother 1\n'
  const server = createServer((request, response) => {
    const foreign = request.url!.startsWith('/foreign')
    response.writeHead(request.url === '/gone?x=1' ? 404 : 200, {
      'Content-Type': 'text/plain; version=0.0.4',
      ...(foreign ? {} : own),
    })
    response.end(page)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const reached = new Reached(['cannot read the configuration:'])
  t.after(() => reached.close())
  for (const path of ['/status', '/gone?x=1', '/foreign', '/metrics'])
    assert.equal((await call(port, path)).body.toString(), page, 'whoever reads the answer has all of it')
  assert.deepEqual(reached.take(), [
    'GET /gone 404',
    'GET /metrics 200',
    'GET /status 200',
    'status 200',
    'status 404',
  ])
  process.env.TEST_FILE = 'test/e2e/x.test.ts'
  t.after(() => {
    process.env.TEST_FILE = 'test/check-contract.test.ts'
  })
  await call(port, '/metrics')
  assert.deepEqual(reached.take().slice(-3), ['metric svc_a_total', 'metric svc_c', 'status 200'])
  const { code, talk } = await svc(['validate', '--config', '/none'])
  assert.match(talk, /cannot read the configuration:/)
  await once(spawn(process.execPath, ['-e', 'process.exit(7)']), 'exit')
  assert.deepEqual(reached.take(), [`exit ${code}`, 'log cannot read the configuration:'])
})
