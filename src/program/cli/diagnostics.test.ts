// owns: ports
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { cleanEnvironment, svcProgram } from '../../../test/helpers/program-under-test.ts'
import { secretBranches, secretKinds, secretVariables } from '../../../test/helpers/secret-configuration.ts'
import type { Manifest } from './diagnostics/bundle.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-diagnostics-'))
after(() => rmSync(directory, { recursive: true }))

interface Result {
  readonly code: number | null
  readonly out: Buffer
  readonly talk: string
}

function ended(child: ChildProcess): Promise<Result> {
  const out: Buffer[] = []
  let talk = ''
  child.stdout!.on('data', chunk => out.push(chunk))
  child.stderr!.on('data', chunk => {
    talk += chunk
  })
  return new Promise(resolve => child.on('close', code => resolve({ code, out: Buffer.concat(out), talk })))
}

function run(command: string, args: string[], env?: Record<string, string>): Promise<Result> {
  return ended(spawn(command, args, { cwd: directory, env: cleanEnvironment(env) }))
}

function diagnose(args: string[], env?: Record<string, string>): Promise<Result> {
  return run(process.execPath, [svcProgram, 'diagnostics', ...args], env)
}

/** A configuration whose agent is on no port of this host. */
function configuration(name: string, tree: object, socket = '/nowhere/svc.sock'): string {
  const path = join(directory, name)
  const own = { self_telemetry: { listen: '127.0.0.1:1', admin_socket: socket } }
  writeFileSync(path, JSON.stringify({ ...own, ...tree }))
  return path
}

interface Unpacked {
  readonly files: ReadonlyMap<string, string>
  readonly manifest: Manifest
}

/** Every file of a bundle, unpacked by the system's tar. */
function unpack(archive: Buffer | string): Unpacked {
  const into = mkdtempSync(join(directory, 'unpacked-'))
  const input = typeof archive === 'string' ? readFileSync(archive) : archive
  execFileSync('tar', ['-xz', '-C', into, '--strip-components=1'], { input })
  const files = new Map<string, string>()
  for (const entry of readdirSync(into, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    files.set(relative(into, path), readFileSync(path, 'latin1'))
  }
  return { files, manifest: JSON.parse(files.get('manifest.json')!) as Manifest }
}

/** An agent of the test's own on a Unix socket. */
async function fakeAgent(t: TestContext, name: string, answer: RequestListener): Promise<string> {
  const path = join(directory, name)
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return path
}

const kinds = [...secretKinds, 'url-userinfo', 'foreign-form', 'token-variable'] as const
const secretOf = (kind: (typeof kinds)[number]) => `Zq.${kind}"+/9`
const plainOf = (kind: (typeof kinds)[number]) => `zq-${kind}-9`

test('no kind of secret is anywhere in a bundle or in what is said, though the agent tells all of them', async t => {
  writeFileSync(join(directory, 'key'), `${secretOf('secret-file')}\n`)
  writeFileSync(join(directory, 'plain'), secretOf('secret-file-in-plain-key'))
  const looks = [
    'Authorization: Basic bG9va3M6b2Y=',
    'bearer looks-of-bearer',
    'ftp://looks:of-userinfo@host/',
    'password=looks-of-password',
    'eyJsb29rcyI6MX0.eyJvZiI6ImEifQ.looks-of-jwt',
    '-----BEGIN PRIVATE KEY-----\nlooks-of-pem\n-----END PRIVATE KEY-----',
  ]
  const told = [
    ...kinds.flatMap(kind => [
      secretOf(kind),
      `x${Buffer.from(secretOf(kind)).toString('base64')}`,
      encodeURIComponent(secretOf(kind)),
    ]),
    plainOf('url-userinfo'),
    ...looks,
  ]
  const socket = await fakeAgent(t, 'telling.sock', (request, response) => {
    if (request.url!.startsWith('/debug/pprof')) response.end(gzipSync(secretOf('bearer-token')))
    else if (request.url === '/metrics') response.end(told.map(each => `# HELP a ${each}\n`).join(''))
    else if (request.url === '/debug/vars') {
      response.statusCode = 404
      response.end(JSON.stringify({ error: 'not_found', message: told.join(' ').slice(0, 400), details: {} }))
    } else if (request.url === '/admin/logs')
      response.end(told.map(msg => `${JSON.stringify({ msg })}\n`).join('') + told.join('\n'))
    else response.end(JSON.stringify({ told, [secretOf('scrape-token')]: { password: 'looks-of-key' } }))
  })
  const { auth, targets, ...branches } = secretBranches(secretOf, directory)
  const path = configuration('secrets.yaml', {
    ...branches,
    self_telemetry: { admin_socket: socket, listen: '127.0.0.1:1', auth },
    collectors: {
      prometheus: {
        targets,
        http_sd: [{ url: `http://u:${plainOf('url-userinfo')}@127.0.0.1:4/` }],
        scrape_configs: [
          {
            job_name: 'c',
            basic_auth: { password: secretOf('foreign-form') },
            http_headers: { X: { values: [secretOf('foreign-form')] } },
          },
        ],
      },
    },
    // One that is wrong is told, without what was found.
    discovery: { token: secretOf('bearer-tokens') },
  })
  const variables = { ...secretVariables(secretOf), SVC_TOKEN: secretOf('token-variable') }
  const { code, out, talk } = await diagnose(['--config', path], variables)
  assert.equal(code, 0, talk)
  const { files, manifest } = unpack(out)
  assert.equal(manifest.agent.address, `unix:${socket}`)
  const everything = [...files, ['standard error', talk]] as const
  for (const [name, text] of everything) {
    for (const kind of kinds) {
      if (kind === 'url-userinfo') continue
      const secret = secretOf(kind)
      for (const form of [
        secret,
        JSON.stringify(secret).slice(1, -1),
        Buffer.from(secret).toString('base64'),
        encodeURIComponent(secret),
      ])
        assert.ok(!text.includes(form), `${name} holds the secret of kind ${kind}:\n${text}`)
    }
    assert.ok(!text.includes(plainOf('url-userinfo')), name)
    assert.ok(
      !/looks-of|bG9va3M6|of-userinfo/.test(text),
      `${name}: ${/.*(?:looks-of|bG9va3M6|of-userinfo).*/.exec(text)?.[0]}`,
    )
  }
  // It is not that nothing was collected.
  for (const name of ['agent/config.json', 'agent/log.ndjson', 'agent/metrics.txt', 'configuration.json']) {
    const { redacted, bytes } = manifest.files.find(file => file.name === name)!
    assert.ok(redacted >= 10 && bytes > 500, `${name}: ${redacted}, ${bytes}`)
  }
  JSON.parse(files.get('agent/config.json')!)
  const whys = new Map(manifest.missing.map(({ name, reason: why }) => [name, why]))
  assert.equal(whys.get('agent/heap.pb.gz'), 'it contains a secret of the configuration')
  assert.match(whys.get('agent/vars.json')!, /^HTTP 404: .*\[REDACTED\]/s)
  assert.match(files.get('host/system.txt')!, /^SVC_TOKEN$/m)
  assert.match(files.get('configuration.json')!, /discovery\.token: unknown key/)
})

test('without an agent it says so and collects the rest', async () => {
  const { code, out, talk } = await diagnose([
    '--config',
    configuration('alone.yaml', { log_level: 'debug' }),
  ])
  assert.equal(code, 0, talk)
  assert.match(talk, /^no agent at unix:\/nowhere\/svc\.sock: no such socket/m)
  assert.match(talk, /^no agent at http:\/\/127\.0\.0\.1:1: nothing is listening there/m)
  const { files, manifest } = unpack(out)
  assert.deepEqual([manifest.agent.answered, manifest.agent.attempts.length], [false, 2])
  assert.ok(
    manifest.missing.some(
      ({ name, reason: why }) => name === 'agent/status.json' && why === 'no agent answers',
    ),
  )
  const { keys, problems } = JSON.parse(files.get('configuration.json')!)
  assert.deepEqual(problems, [])
  assert.deepEqual(
    keys.filter(({ key }: { key: string }) => key === 'log_level' || key === 'mode'),
    [
      { key: 'mode', value: 'agent', origin: 'default' },
      { key: 'log_level', value: 'debug', origin: `${join(directory, 'alone.yaml')}:1:91` },
    ],
  )
  assert.match(files.get('doctor.txt')!, /^Host checks: svc \d/)
  assert.ok(Array.isArray(JSON.parse(files.get('doctor.json')!).groups))
  assert.match(files.get('host/kernel.txt')!, /kernel\/perf_event_paranoid = \d/)
  for (const { name, bytes } of manifest.files) assert.equal(files.get(name)!.length, bytes, name)
})

test('a configuration that cannot be used is told and hinders nothing', async () => {
  const path = join(directory, 'bad.yaml')
  writeFileSync(path, 'self_telemetry: {listen: "127.0.0.1:1"}\nmode: agnt\nnothing: 1\n')
  const { code, out } = await diagnose(['--config', path])
  assert.equal(code, 0)
  const { problems } = JSON.parse(unpack(out).files.get('configuration.json')!)
  assert.equal(problems.length, 2)
  assert.match(problems[0], /bad\.yaml:2:7: mode: /)
  const { code: none, out: rest } = await diagnose(['--config', '/nowhere/at-all.yaml'])
  assert.equal(none, 0)
  assert.match(unpack(rest).files.get('configuration.json')!, /there is no such file/)
})

test('a file is written for its owner alone, and none is replaced unasked', async () => {
  const config = configuration('file.yaml', {})
  const path = join(directory, 'bundle.tar.gz')
  const first = await diagnose(['--config', config, '--output', path])
  assert.deepEqual([first.code, first.out.length], [0, 0], first.talk)
  assert.match(first.talk, /^\d+ files, \d+ missing .*, \d+ bytes in .*bundle\.tar\.gz\. Review it/m)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.ok(unpack(path).files.size > 5)
  writeFileSync(path, 'mine')
  const second = await diagnose(['--config', config, '--output', path])
  assert.equal(second.code, 2)
  assert.equal(
    second.talk,
    `svc: cannot write ${path}: the file exists; choose another name, or overwrite it with --force\n`,
  )
  assert.equal(readFileSync(path, 'utf8'), 'mine')
  const forced = await diagnose(['--config', config, '--output', path, '--force'])
  assert.equal(forced.code, 0, forced.talk)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.ok(unpack(path).files.size > 5)
  symlinkSync(config, join(directory, 'link'))
  for (const special of ['/dev/null', directory, join(directory, 'link')]) {
    const { code, talk } = await diagnose(['--config', config, '--output', special, '--force'])
    assert.deepEqual([code, /not a regular file/.test(talk)], [2, true], talk)
  }
  const nowhere = await diagnose(['--config', config, '--output', join(directory, 'no/such.tar.gz')])
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.talk, /^svc: cannot write .*such\.tar\.gz: ENOENT/)
})

test('a write that fails leaves no file', {
  skip: process.getuid!() !== 0 && 'mounting needs root',
}, async () => {
  const full = join(directory, 'full')
  mkdirSync(full)
  const config = configuration('full.yaml', {})
  const line = `mount -t tmpfs -o size=4k none "$1" && "$2" "$3" diagnostics --config "$4" --output "$1/b.tar.gz"; echo "code $?"; ls -A "$1"`
  const { out, talk } = await run('unshare', [
    '-m',
    'sh',
    '-c',
    line,
    'sh',
    full,
    process.execPath,
    svcProgram,
    config,
  ])
  assert.equal(out.toString(), 'code 1\n', talk)
  assert.match(talk, /^svc: cannot write .*b\.tar\.gz: ENOSPC/m)
})

test('a terminal gets a bundle only by force', async () => {
  const config = configuration('terminal.yaml', {})
  const onTerminal = (flags: string) =>
    run('script', [
      '-qec',
      `"${process.execPath}" "${svcProgram}" diagnostics --config "${config}" ${flags}`,
      '/dev/null',
    ])
  const refused = await onTerminal('')
  assert.equal(refused.code, 2)
  assert.match(refused.out.toString(), /^svc: cannot write the bundle to a terminal: .*--output FILE/)
  const forced = await onTerminal('--force')
  assert.equal(forced.code, 0)
  assert.ok(forced.out.includes(Buffer.from([0x1f, 0x8b, 0x08])))
})

test('an agent that never ends its answers makes a bundle of a bounded size that says so', async t => {
  const socket = await fakeAgent(t, 'endless.sock', (request, response) => {
    if (request.url === '/healthz') {
      response.end()
      return
    }
    // Does not compress, and is no JSON.
    const piece = Buffer.from(Array.from({ length: 64 * 1024 }, () => 33 + Math.floor(Math.random() * 90)))
    const more = () => {
      while (!response.destroyed && response.write(piece));
    }
    response.on('drain', more)
    more()
  })
  const path = configuration('endless.yaml', {}, socket)
  const { code, out } = await diagnose(['--config', path])
  assert.equal(code, 0)
  assert.ok(out.length <= 10_000_000, `${out.length}`)
  const { manifest } = unpack(out)
  for (const name of ['agent/status.json', 'agent/metrics.txt', 'agent/log.ndjson'])
    assert.ok(manifest.files.find(file => file.name === name)!.truncated, name)
  assert.match(
    manifest.missing.find(({ name }) => name === 'agent/heap.pb.gz')!.reason,
    /^it is larger than \d+ bytes$/,
  )
})

test('a reader that goes away is no failure', async () => {
  const child = spawn(
    process.execPath,
    [svcProgram, 'diagnostics', '--config', configuration('pipe.yaml', {})],
    {
      cwd: directory,
      env: cleanEnvironment(),
    },
  )
  child.stdout.destroy()
  const code = await new Promise(resolve => child.on('close', resolve))
  assert.equal(code, 0)
  assert.ok(!existsSync(join(directory, 'core')))
})

test('a wrong URL or flag is usage', async () => {
  const url = await diagnose(['--url', 'localhost:19090'])
  assert.equal(url.code, 2)
  assert.match(url.talk, /^svc: cannot use the URL of the agent: /)
  const flag = await diagnose(['--out', 'x'])
  assert.deepEqual([flag.code, flag.out.length], [2, 0])
})
