import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { serve } from '../../../../test/helpers/api-server.ts'
import { call } from '../../../../test/helpers/http.ts'
import { openapi } from '../openapi.ts'
import { noPage, pageFiles } from './page-files.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-page-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const files = { 'index.html': '<!doctype html>', 'main-AB.js': 'let a = 1', 'main-AB.css': 'a {}' }
for (const [name, text] of Object.entries(files)) {
  writeFileSync(join(directory, `${name}.br`), brotliCompressSync(text))
  writeFileSync(join(directory, `${name}.gz`), gzipSync(text))
}

test('files come as they lie there, packed as the browser takes them', async t => {
  const { api } = await serve(t, {}, { operations: pageFiles(directory) })
  const check = async (
    accepts: string | undefined,
    encoding: string | undefined,
    unpack: (body: Buffer) => Buffer,
  ) => {
    const headers = accepts === undefined ? {} : { 'Accept-Encoding': accepts }
    const reply = await call(api.port, '/ui/assets/main-AB.js', { headers })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers['content-encoding'], encoding)
    assert.equal(reply.headers['content-type'], 'text/javascript; charset=utf-8')
    assert.match(String(reply.headers['cache-control']), /immutable/)
    assert.equal(reply.headers.vary, 'Accept-Encoding')
    assert.equal(unpack(reply.body).toString(), files['main-AB.js'])
  }
  const plain = (body: Buffer) => body
  await check('gzip, deflate, br, zstd', 'br', brotliDecompressSync)
  await check('gzip;q=0.5, BR;q=0', 'gzip', gunzipSync)
  await check('gzip', 'gzip', gunzipSync)
  await check('br;q=0.000, gzip;q=0', undefined, plain)
  await check('brotli, xgzip', undefined, plain)
  await check(undefined, undefined, plain)
})

test('each page of the list is the same document, which no cache keeps and nothing can be put into', async t => {
  const { api } = await serve(t, {}, { operations: pageFiles(directory) })
  for (const path of ['/ui', '/ui/', '/ui/map', '/ui/traces?trace=1', '/ui/service?name=a']) {
    const reply = await call(api.port, path)
    assert.equal(reply.body.toString(), files['index.html'], path)
    assert.equal(reply.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(reply.headers['cache-control'], 'no-store')
    assert.match(String(reply.headers['content-security-policy']), /default-src 'none'; script-src 'self'/)
    assert.equal(reply.headers['x-frame-options'], 'DENY')
  }
  for (const path of ['/ui/nothing', '/ui/assets/../index.html', '/ui/assets/index.html.gz', '/ui/assets/'])
    assert.equal((await call(api.port, path)).status, 404, path)
})

test('the page needs no token, for it holds no data', async t => {
  const auth = { enabled: true, bearer_token: 'secret', bearer_tokens: [], exempt: [] }
  const { api } = await serve(t, { auth }, { operations: pageFiles(directory) })
  assert.equal((await call(api.port, '/ui')).status, 200)
  assert.equal((await call(api.port, '/ui/assets/main-AB.css')).status, 200)
})

test('a page that was not built says so', async t => {
  const { api } = await serve(t, {}, { operations: pageFiles(join(directory, 'nowhere')) })
  const reply = await call(api.port, '/ui')
  assert.equal(reply.status, 503)
  assert.match(reply.body.toString(), /bash tools\/setup/)
})

test('the description of the API leaves files out', () => {
  assert.deepEqual(openapi(pageFiles(directory)).paths, {})
})

test('a page that is switched off says which key does so', async t => {
  const { api } = await serve(t, {}, { operations: noPage() })
  const reply = await call(api.port, '/ui/map')
  assert.equal(reply.status, 404)
  assert.match(reply.body.toString(), /self_telemetry\.ui\.enabled: true/)
})
