import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { makeCertificates } from '../../../test/helpers/certificates.ts'
import { defaults, type LoadedConfig, loadConfig } from '../../config/index.ts'
import { type Outcome, outcomeOf } from '../../kernel/need.ts'
import type { Check } from './check.ts'
import { adminSocket } from './commands.ts'
import { address, certificate, exposure } from './management.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-management-'))
after(() => rmSync(directory, { recursive: true }))

type Settings = LoadedConfig['config']['self_telemetry']

async function outcomes(row: Check, change: Partial<Settings>): Promise<Outcome[]> {
  const config = defaults()
  const loaded = loadConfig({ explicit: false, env: {}, cwd: directory, systemFile: '/nonexistent' })
  const changed = {
    ...loaded,
    config: { ...config, self_telemetry: { ...config.self_telemetry, ...change } },
  }
  return (await row.try({ loaded: changed, timeoutMs: 1000 })).map(finding => outcomeOf(row, finding))
}

async function check(row: Check, change: Partial<Settings>, want: string[], detail = /./): Promise<void> {
  const found = await outcomes(row, change)
  assert.deepEqual(
    found.map(({ state, fault }) => fault ?? state),
    want,
    JSON.stringify(found),
  )
  for (const each of found) assert.match(each.detail, detail)
}

async function listen(t: TestContext, where: { port: number; host: string } | string): Promise<Server> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(where, resolve))
  t.after(() => new Promise(resolve => server.close(resolve)))
  return server
}

test('the address is free, held by another process, by svc, or none of this host', async t => {
  await check(address, { listen: '127.0.0.1:0' }, ['ok'], /is free$/)
  await check(address, { enabled: false }, ['off'])
  await check(address, { listen: '192.0.2.1:19090' }, ['foreign'])
  await check(address, { listen: 'nobody.invalid:19090' }, ['unusable'])
  const taken = (await listen(t, { port: 0, host: '127.0.0.1' })).address() as { port: number }
  const at = { listen: `127.0.0.1:${taken.port}` }
  await check(address, at, ['taken'], new RegExp(`in use by .* \\(pid ${process.pid}\\)$`))
})

test('a port that a running svc holds is no fault', async t => {
  const script = `require('node:fs').writeFileSync('/proc/self/comm', 'svc')
    const server = require('node:net').createServer().listen(0, '127.0.0.1', () => console.log(server.address().port))
    process.stdin.resume().on('end', () => process.exit())`
  const holder = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise(resolve => holder.once('close', resolve))
  t.after(async () => {
    holder.stdin.end()
    await ended
  })
  const port = String(await new Promise(resolve => holder.stdout.once('data', resolve))).trim()
  await check(
    address,
    { listen: `127.0.0.1:${port}` },
    ['ok'],
    new RegExp(`by the running svc \\(pid ${holder.pid}\\)`),
  )
})

test('a port whose holder this user may not see is no fault where it answers as svc does', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, async t => {
  const script = `import { address } from ${JSON.stringify(import.meta.resolve('./management.ts'))}
    import { defaults } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const config = defaults()
    const listen = process.env.LISTEN
    const loaded = { config: { ...config, self_telemetry: { ...config.self_telemetry, listen } } }
    console.log(JSON.stringify(await address.try({ loaded, timeoutMs: 5000 })))`
  const held = async (body: string) => {
    const server = createHttpServer((_request, response) => response.end(body))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const node = [process.execPath, '--input-type=module', '-e', script]
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', ...node]
    const env = { ...process.env, LISTEN: `127.0.0.1:${port}` }
    const { stdout } = await promisify(execFile)('setpriv', nobody, { env })
    return JSON.parse(stdout)[0]
  }
  for (const status of ['ok', 'unhealthy'])
    assert.match(
      (await held(`{"status":"${status}"}`)).ok,
      /is in use by another user’s process that answers/,
    )
  const foreign = await held('{"health":"fine"}')
  assert.equal(foreign.fault, 'taken')
  assert.match(foreign.detail, /a process that this user cannot see$/)
})

test('a port below 1024 is for root', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
  const script = `import { address } from ${JSON.stringify(import.meta.resolve('./management.ts'))}
    import { defaults } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const config = defaults()
    const loaded = { config: { ...config, self_telemetry: { ...config.self_telemetry, listen: '127.0.0.1:1023' } } }
    console.log(JSON.stringify(await address.try({ loaded, timeoutMs: 1000 })))`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const found = execFileSync('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', ...node])
  assert.equal(JSON.parse(found.toString())[0].fault, 'privileged')
})

test('TLS files are read, belong together and are valid now, or each fault is told', async t => {
  const made = makeCertificates({ days: 30 })
  t.after(() => made.remove())
  const { file } = made
  const tls = (cert: string, key: string, ca = '') => ({
    tls: {
      enabled: true,
      cert_file: file(`${cert}.pem`),
      key_file: file(`${key}.key`),
      client_ca_file: ca && file(`${ca}.pem`),
    },
  })
  await check(certificate, {}, [])
  await check(certificate, { ...tls('server', 'server', 'ca'), enabled: false }, [])
  await check(certificate, tls('server', 'server'), ['ok'], /until 20\d\d-\d\d-\d\d$/)
  await check(certificate, tls('server', 'server', 'ca'), ['ok'])
  await check(certificate, tls('server', 'client'), ['unusable'])
  await check(certificate, tls('old', 'old'), ['expired'])
  await check(certificate, tls('ca', 'ca'), ['expiring'])
  await check(certificate, tls('none', 'server'), ['unreadable'], /tls\.cert_file.*none\.pem/)
  await check(certificate, tls('server', 'none'), ['unreadable'], /tls\.key_file/)
  await check(certificate, tls('server', 'server', 'none'), ['unreadable'], /tls\.client_ca_file/)
  for (const name of ['broken.pem', 'broken.key']) writeFileSync(file(name), 'neither')
  await check(certificate, tls('broken', 'server'), ['unusable'])
  await check(certificate, tls('server', 'broken'), ['unusable'])
  await check(certificate, tls('server', 'server', 'broken'), ['unusable'])
})

test('who may reach the API without a token is told, and no token is', async () => {
  const { auth: off, tls: none } = defaults().self_telemetry
  const auth = (...tokens: string[]) => ({ ...off, enabled: true, bearer_tokens: tokens })
  const tls = { ...none, enabled: true }
  const long = 'a-token-of-24-characters'
  await check(exposure, {}, ['open'])
  await check(exposure, { enabled: false }, [])
  await check(exposure, { listen: '127.0.0.1:1' }, ['ok'])
  await check(exposure, { listen: '[::1]:1' }, ['ok'])
  await check(exposure, { listen: 'localhost:1' }, ['ok'])
  await check(exposure, { listen: '0.0.0.0:1' }, ['open'])
  await check(exposure, { admin: { allow_remote: true } }, ['open_admin'])
  await check(exposure, { auth: auth() }, ['no_token'])
  await check(exposure, { auth: auth(long) }, ['plain_text'], /^(?!.*a-token)/)
  await check(exposure, { auth: auth(long), tls }, ['ok'])
  await check(exposure, { auth: auth(long, 'short'), tls }, ['short_token'], /^(?!.*: short)/)
  await check(exposure, { auth: auth('short') }, ['short_token', 'plain_text'])
})

test('the admin socket can be made, or it is told why not, and nothing stays', async t => {
  const at = (path: string) => ({ admin_socket: path })
  const before = readdirSync(directory)
  await check(adminSocket, at(join(directory, 'svc.sock')), ['ok'], /can be created$/)
  await check(adminSocket, at(join(directory, 'not/yet/svc.sock')), ['ok'])
  assert.deepEqual(readdirSync(directory), before)
  await check(adminSocket, at(''), ['off'])
  await check(adminSocket, { ...at(join(directory, 'svc.sock')), enabled: false }, [])
  await check(adminSocket, at(`/run/${'x'.repeat(103)}`), ['too_long'])
  writeFileSync(join(directory, 'file'), '')
  await check(adminSocket, at(join(directory, 'file/svc.sock')), ['not_writable'])
  await listen(t, join(directory, 'svc.sock'))
  await check(adminSocket, at(join(directory, 'svc.sock')), ['ok'], /a running agent answers/)
  assert.ok(existsSync(join(directory, 'svc.sock')))
})

test('a directory that is not ours, or only for reading, is told', {
  skip: process.getuid?.() !== 0 && 'needs root',
}, () => {
  const closed = join(directory, 'closed')
  mkdirSync(closed)
  chmodSync(directory, 0o755)
  const script = `import { adminSocket } from ${JSON.stringify(import.meta.resolve('./commands.ts'))}
    import { defaults } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const loaded = { config: defaults() }
    loaded.config.self_telemetry.admin_socket = ${JSON.stringify(join(closed, 'svc.sock'))}
    console.log(JSON.stringify(await adminSocket.try({ loaded, timeoutMs: 1000 })))`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const fault = (program: string, ...args: string[]) =>
    JSON.parse(execFileSync(program, [...args, ...node]).toString())[0].fault
  assert.equal(fault('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'), 'not_writable')
  const readOnly = `mount -t tmpfs -o ro none ${closed} && exec "$@"`
  assert.equal(fault('unshare', '-m', 'sh', '-c', readOnly, 'sh'), 'read_only')
})
