import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { loadConfig } from '../../config/index.ts'
import { outcomeOf } from '../../kernel/need.ts'
import { targets } from './targets.ts'

async function listen(t: TestContext, server: Server): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return `127.0.0.1:${address.port}`
}

function target(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  t.after(() => server.closeAllConnections())
  return listen(t, server)
}

const page =
  (text: string, type = 'text/plain; version=0.0.4'): RequestListener =>
  (_request, response) =>
    response.setHeader('content-type', type).end(text)

/** What the check finds, as `STATE or FAULT: detail`. */
async function checkWithin(
  timeoutMs: number,
  t: TestContext,
  yaml: string,
  ...want: RegExp[]
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-doctor-targets-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'svc.yaml')
  writeFileSync(path, `mode: collector\ncollectors:\n  prometheus:\n${yaml.replace(/^/gm, '    ')}\n`)
  writeFileSync(join(directory, 'none.json'), '[]')
  const loaded = loadConfig({ path, explicit: true, env: {} })
  assert.deepEqual(loaded.problems, [])
  const found = (await targets.try({ loaded, timeoutMs })).map(finding => outcomeOf(targets, finding))
  const told = found.map(({ state, fault, detail }) => `${fault ?? state}: ${detail}`)
  assert.equal(told.length, want.length, told.join('\n'))
  for (const [i, pattern] of want.entries()) assert.match(told[i]!, pattern)
}

const check = (t: TestContext, yaml: string, ...want: RegExp[]) => checkWithin(20_000, t, yaml, ...want)

test('a configuration that names no targets has nothing to try', async t => {
  await check(t, 'enabled: true', /^absent: collectors\.prometheus names no targets$/)
  await check(t, 'enabled: false')
})

test('targets that tell a page are up, and of others it is told why they are not', async t => {
  const up = await target(t, page('a 1\n'))
  const wrong = await target(t, page('a one\n'))
  const refusing = await target(t, (_request, response) => response.writeHead(401).end())
  await check(
    t,
    `scrape_configs: [{ job_name: shop, static_configs: [{ targets: ['${up}', '${wrong}', '${refusing}'] }] }]`,
    /^ok: shop: 1 of 3 targets up$/,
    /^down: shop: .*(line 1 of its page|401)/,
    /^down: shop: .*(line 1 of its page|401)/,
  )
})

test('what hangs is waited for so long and no longer', async t => {
  const hanging = await listen(
    t,
    createTcpServer(socket => socket.on('error', () => undefined).unref()),
  )
  await checkWithin(
    4000,
    t,
    `scrape_configs: [{ job_name: slow, static_configs: [{ targets: ['${hanging}'] }] }]`,
    /^down: slow: .*timed out after \d+ ms without a response/,
  )
})

test('of very many targets some are tried, and of many that are down the first are told', async t => {
  const up = await target(t, page('a 1\n'))
  const many = Array.from({ length: 100 }, (_, i) => `'${up.replace(/127\.0\.0\.1/, `127.0.0.${i + 1}`)}'`)
  await check(
    t,
    `scrape_configs: [{ job_name: many, static_configs: [{ targets: [${many}] }] }]`,
    /^ok: many: 1 of 20 targets up, 80 not checked$/,
    /^down: many: /,
    /^down: many: /,
    /^down: many: /,
    /^down: many: 16 more targets are down$/,
  )
})

test('a source that does not answer is told with its reason, one without targets is none', async t => {
  const refusing = await target(t, (_request, response) => response.writeHead(503).end())
  await check(
    t,
    `scrape_configs:
  - { job_name: far, http_sd_configs: [{ url: 'http://${refusing}/targets' }] }
  - { job_name: empty, file_sd_configs: [{ files: [none.json] }] }
  - { job_name: dropped, static_configs: [{ targets: [a:1] }], relabel_configs: [{ action: drop }] }`,
    /^silent: far: .*503/,
    /^none: empty: no targets$/,
    /^none: dropped: no targets: 1 were dropped, the first one because of: relabelling$/,
  )
})
