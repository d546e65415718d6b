// owns: ports
import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { attach, openStore, queueDirectory } from '../../../test/helpers/disk-store.ts'
import { freePort } from '../../../test/helpers/program.ts'
import { type Result, svc } from '../../../test/helpers/svc.ts'
import { ExitCode, exitCodeOf, exitCodes, StartError } from '../../foundation/lib/start-error.ts'
import { plainBatch } from '../../foundation/model/batch.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-exit-'))
after(() => rmSync(directory, { recursive: true }))
// Another user may look into the one, and not into the other.
chmodSync(directory, 0o755)
const closed = mkdtempSync(join(directory, 'closed-'))
const skip = process.getuid?.() !== 0 && 'needs root, to be another user'
const nobody = 65_534

function file(name: string, text: string, mode = 0o644): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

/** An agent that would not get far: it listens nowhere that anybody else does. */
const apart = {
  SVC_SELF_TELEMETRY_ADMIN_SOCKET: '',
  SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:0',
  SVC_AGENT_NODEEXPORTER_ENABLED: 'false',
  SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false',
  // Beside it stands the note of the run.
  SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: join(directory, 'state/queue'),
}
const mistaken = { SVC_SELF_TELEMETRY_ADMIN_SOCKET: join(directory, 'none.sock') }

/** A command that ends with each code, and what it says. A code without a line is a fault of types. */
const reached: Readonly<Record<ExitCode, () => Promise<readonly [Result, RegExp]>>> = {
  [ExitCode.ok]: async () => [await svc(['version']), /^/],
  [ExitCode.general]: async () => [
    await svc(['status'], { env: { ...apart, ...mistaken, SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:1' } }),
    /cannot show the status: no agent answers/,
  ],
  [ExitCode.usage]: async () => [await svc(['validate', file('wrong.yaml', 'a: 1\n')]), /unknown key/],
  [ExitCode.ebpf]: async () => [
    await svc(['run'], {
      env: { ...apart, SVC_AGENT_EBPF_REQUIRED: 'true', SVC_AGENT_EBPF_BACKEND: 'fentry' },
      cwd: directory,
    }),
    /agent\.ebpf\.required/,
  ],
  [ExitCode.permission]: async () => [
    await svc(['queue', '--directory', join(closed, 'queue')], { uid: nobody }),
    /cannot read the queue/,
  ],
  [ExitCode.exporting]: async () => {
    const port = await freePort()
    const path = file(
      'away.yaml',
      `self_telemetry: {enabled: false}\notlp: {endpoint: "127.0.0.1:${port}", insecure: true}\n` +
        'pipeline: {export: {queue: {enabled: false}}}\n',
    )
    return [await svc(['doctor', 'export', '--config', path]), /^/]
  },
}

test('each exit code of the table is reached', { skip }, async () => {
  assert.deepEqual(Object.keys(exitCodes), Object.keys(reached))
  assert.deepEqual(
    Object.keys(exitCodes).map(Number),
    Object.values(ExitCode).toSorted((a, b) => a - b),
  )
  for (const [code, reach] of Object.entries(reached)) {
    const [result, said] = await reach()
    assert.equal(result.code, Number(code), `${result.out}${result.talk}`)
    assert.match(result.talk, said)
  }
})

test('an address that is taken is no mistake of the configuration', async t => {
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise(resolve => taken.once('listening', resolve))
  t.after(() => taken.close())
  const { port } = taken.address() as { port: number }
  const env = { ...apart, SVC_AGENT_EBPF_ENABLED: 'false', SVC_SELF_TELEMETRY_LISTEN: `127.0.0.1:${port}` }
  const { code, talk } = await svc(['run'], { env, cwd: directory })
  assert.equal(code, ExitCode.general, talk)
  assert.match(talk, /the port is in use by/)
})

test('what this user may not read or write has a code of its own', { skip }, async t => {
  const secret = file('secret.yaml', 'mode: agent\n', 0o600)
  const check = async (args: string[], want: RegExp) => {
    const { code, talk } = await svc(args, { uid: nobody, env: apart })
    assert.equal(code, ExitCode.permission, `${args.join(' ')}: ${talk}`)
    assert.match(talk, want)
  }
  for (const args of [
    ['validate', secret],
    ['run', '--config', secret],
    ['pipeline', 'test', '--config', secret, '--input', '-'],
  ])
    await check(args, /permission denied/)
  await check(
    ['diagnostics', '--output', join(directory, 'svc.tar.gz'), '--config', '/dev/null'],
    /cannot write/,
  )
  const queue = queueDirectory(t)
  await fill(queue)
  await check(['queue', 'verify', '--directory', queue], /EACCES/)
  // Its socket is there, and for root alone.
  const socket = join(directory, 'admin.sock')
  const server = createServer().listen(socket)
  await new Promise(resolve => server.once('listening', resolve))
  t.after(() => server.close())
  chmodSync(socket, 0o600)
  const env = { ...apart, SVC_SELF_TELEMETRY_ADMIN_SOCKET: socket }
  const { code, talk } = await svc(['status'], { uid: nobody, env, cwd: '/' })
  assert.deepEqual([code, /permission denied: run as root/.test(talk)], [ExitCode.permission, true], talk)
})

test('a copy that could not be made is an export that failed', async t => {
  const queue = queueDirectory(t)
  await fill(queue)
  const gone = await svc([
    'queue',
    'export',
    '--directory',
    queue,
    '--to',
    join(directory, 'no/such/copy.json'),
  ])
  assert.equal(gone.code, ExitCode.exporting, gone.talk)
  assert.match(gone.talk, /cannot write/)
})

async function fill(queue: string): Promise<void> {
  const { store } = openStore(queue)
  attach(store, 'traces').queue.push(plainBatch('traces', 1, Buffer.from([10, 0])))
  await store.close()
}

test('the right that is missing is found behind the words of who met it', () => {
  const denied = Object.assign(new Error('EACCES'), { code: 'EACCES' })
  const check = (error: unknown, want: ExitCode) => assert.equal(exitCodeOf(error), want)
  check(denied, ExitCode.permission)
  check(new Error('cannot', { cause: new Error('open', { cause: denied }) }), ExitCode.permission)
  check(new Error('cannot', { cause: new StartError('x', ExitCode.ebpf, denied) }), ExitCode.ebpf)
  check(Object.assign(new Error(), { code: 'ENOENT' }), ExitCode.general)
  check('text', ExitCode.general)
  const itself = new Error('a')
  itself.cause = itself
  check(itself, ExitCode.general)
})
