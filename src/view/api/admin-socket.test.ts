import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ask, serve } from '../../../test/helpers/api-server.ts'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'

function directory(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'svc-admin-'))
  t.after(() => rmSync(made, { recursive: true }))
  return made
}

test('the admin socket answers everything without a token, a limit and a name', async t => {
  const path = join(directory(t), 'run', 'svc', 'svc.sock')
  const auth = { enabled: true, bearer_token: 'x', bearer_tokens: [], exempt: [] }
  const rate_limit = { enabled: true, requests_per_second: 1 }
  const { api } = await serve(t, { auth, rate_limit, debug: true, admin_socket: path })
  assert.deepEqual([api.socket, api.socketFault], [path, undefined])
  const of = (path: string, method = 'GET', headers = {}) =>
    ask(0, path, { socketPath: api.socket, method, headers })
  for (let i = 0; i < 5; i++) {
    assert.equal((await of('/status')).status, 200)
    assert.equal((await of('/debug/vars', 'GET', { host: 'any.example' })).status, 200)
    assert.equal((await of('/admin/act', 'POST')).status, 200)
  }
  assert.equal((await of('/nothing')).status, 404)
  assert.equal((await of('/status', 'PUT')).status, 405)
  assert.equal((await ask(api.port, '/status')).status, 401)
})

test('only the owner may open the socket, and anybody may look for it', { skip: withoutRoot }, async t => {
  const home = directory(t)
  const path = join(home, 'run', 'svc.sock')
  // A mask that takes nothing away.
  const mask = process.umask(0)
  t.after(() => process.umask(mask))
  const { api } = await serve(t, { admin_socket: path })
  assert.equal(api.socketFault, undefined)
  assert.equal(lstatSync(path).mode & 0o7777, 0o600)
  assert.equal(lstatSync(join(home, 'run')).mode & 0o7777, 0o755)
  assert.deepEqual(readdirSync(join(home, 'run')), ['svc.sock'])
  chmodSync(home, 0o755)
  const script = `require('net').connect('${path}').on('error', e => console.log(e.code)).on('connect', () => console.log('open'))`
  const { stdout } = spawnSync(process.execPath, ['-e', script], {
    uid: 65_534,
    gid: 65_534,
    cwd: '/',
    timeout: 60_000,
  })
  assert.equal(String(stdout).trim(), 'EACCES')
})

test('a socket that nobody answers is replaced', async t => {
  const path = join(directory(t), 'svc.sock')
  const script = `require('net').createServer().listen('${path}', () => process.kill(process.pid, 'SIGKILL'))`
  spawnSync(process.execPath, ['-e', script])
  assert.ok(lstatSync(path).isSocket())
  const { api } = await serve(t, { admin_socket: path })
  assert.equal(api.socket, path)
  assert.equal((await ask(0, '/status', { socketPath: path })).status, 200)
})

test('a socket of another agent, or another file, stays, and the API starts without one', async t => {
  const home = directory(t)
  const path = join(home, 'svc.sock')
  const first = await serve(t, { admin_socket: path })
  const check = async (at: string, want: RegExp) => {
    const { api } = await serve(t, { admin_socket: at })
    assert.equal(api.socket, '')
    assert.match(api.socketFault!, want)
    assert.equal((await ask(api.port, '/status')).status, 200)
    await api.close()
  }
  await check(path, /^cannot listen on .*svc\.sock \(self_telemetry\.admin_socket\): another agent uses it/)
  assert.equal((await ask(0, '/status', { socketPath: path })).status, 200)
  const file = join(home, 'file')
  writeFileSync(file, 'mine')
  await check(file, /the path exists and is not a socket; remove it/)
  symlinkSync(path, join(home, 'link'))
  await check(join(home, 'link'), /the path exists and is not a socket/)
  await check(join(file, 'svc.sock'), /ENOTDIR|EEXIST/)
  await check(join(home, 'x'.repeat(90), 'y'), /choose a shorter path/)
  assert.deepEqual(readdirSync(home).sort(), ['file', 'link', 'svc.sock', 'x'.repeat(90)])
  await first.api.close()
  assert.equal(existsSync(path), false)
})

test('the end removes the socket, unless it is another’s by now', async t => {
  const home = directory(t)
  const path = join(home, 'svc.sock')
  const first = await serve(t, { admin_socket: path })
  renameSync(path, join(home, 'old'))
  const other = createServer()
  await new Promise<void>(resolve => other.listen(path, resolve))
  t.after(() => other.close())
  await first.api.close()
  assert.ok(lstatSync(path).isSocket())
})

test('a flood of the port leaves the socket open', async t => {
  const path = join(directory(t), 'svc.sock')
  const { api, waiting } = await serve(t, { admin_socket: path, debug: true }, { limits: { connections: 3 } })
  const held = [1, 2, 3].map(() => ask(api.port, '/debug/take'))
  await waiting.come(3)
  await assert.rejects(ask(api.port, '/status'))
  assert.equal((await ask(0, '/status', { socketPath: path })).status, 200)
  waiting.release()
  await Promise.all(held)
})

test('a directory of another user, or one that anybody may write to, is not used', async t => {
  const make = (mode: number) => {
    const path = mkdtempSync(join(tmpdir(), 'svc-socket-'))
    t.after(() => rmSync(path, { recursive: true }))
    chmodSync(path, mode)
    return path
  }
  const { api } = await serve(t, { admin_socket: join(make(0o777), 's') })
  assert.match(api.socketFault ?? '', /any user may write to/)
  const { api: inSticky } = await serve(t, { admin_socket: join(make(0o1777), 's') })
  assert.equal(inSticky.socketFault, undefined)
  if (process.getuid?.() !== 0) return
  const foreign = make(0o755)
  chownSync(foreign, 1234, 1234)
  const { api: none } = await serve(t, { admin_socket: join(foreign, 's') })
  assert.match(none.socketFault ?? '', /belongs to user 1234/)
  assert.equal(none.socket, '')
})
