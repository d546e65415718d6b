// owns: host
// Packages as users meet them: installed into a copy of this host, unpacked anywhere, looked at by dpkg.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ExitCode } from '../../src/foundation/lib/start-error.ts'
import { everywhere } from '../../src/program/cli/arguments.ts'
import { commands } from '../../src/program/cli/index.ts'
import { debianScripts } from '../../tools/package/maintainer-scripts.ts'
import { names, root, sourceEpoch } from '../../tools/package/release.ts'
import { writeRpmPackage } from '../../tools/package/rpm-package.ts'
import { stagePackage, writeChecksums, writePackages } from '../../tools/package/write.ts'
import { builtPackages, pathsBelow } from '../helpers/built-packages.ts'
import { type BillOfMaterials, checkBillOfMaterials } from '../helpers/cyclonedx.ts'
import { debianRoot, ThrowawayRoot } from '../helpers/debian-root.ts'
import { withoutRoot } from '../helpers/host-needs.ts'
import { freePort, until } from '../helpers/program.ts'
import { onlyInSoak } from '../helpers/soak.ts'
import { svc } from '../helpers/svc.ts'

/** What dpkg, apt, systemd and the tools for accounts keep of everything they do. */
const books =
  /^(var\/lib\/(dpkg|apt)|var\/log|var\/cache|run\/systemd)\/|^etc\/((passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock)$/

const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
const withoutRpmbuild =
  spawnSync('rpmbuild', ['--version']).status === 0 ? false : 'an .rpm is made by rpmbuild (rpm)'
const withoutGroff =
  spawnSync('groff', ['--version']).status === 0 ? false : 'pages are set by groff (groff-base)'

test('a package holds all that the program loads, and nothing of the machine that made it', async () => {
  const { root: staged } = await builtPackages()
  const paths = pathsBelow(staged)
  const program = paths.filter(path => path.startsWith('usr/lib/svc/')).map(path => path.slice(12))
  const built = pathsBelow(join(root, 'dist')).filter(path => !/\.map$|^security\.cjs$/.test(path))
  const libraries = ['libbpf.so.1', 'libelf.so.1', 'libz.so.1']
  const expected = ['bin/svc', 'runtime/bin/node', ...[...built, ...libraries].map(path => `dist/${path}`)]
  assert.deepEqual(program, expected.sort())
  for (const path of paths) {
    if (path === 'usr/bin/svc') continue
    const at = readFileSync(join(staged, path)).indexOf(`${root}/`)
    assert.equal(at, -1, `${path} holds the path of the machine that made it`)
  }
})

test('the configuration file sets where it listens alone, and with one "#" less on each line every default', async context => {
  const { root: staged } = await builtPackages()
  const file = join(staged, 'etc/svc/config.yaml')
  const text = readFileSync(file, 'utf8')
  assert.deepEqual(
    text.split('\n').filter(line => !/^#|^$/.test(line)),
    ['self_telemetry:', '  listen: 127.0.0.1:19090'],
  )
  assert.ok(text.split('\n').slice(0, 15).includes('#  endpoint: ""'))
  const directory = scratch(context)
  const uncommented = join(directory, 'config.yaml')
  writeFileSync(uncommented, text.replace(/^#/gm, ''))
  const asItIs = await svc(['validate', file])
  assert.match(asItIs.out, /: 1 setting/)
  const whole = await svc(['validate', uncommented])
  assert.equal(whole.code, ExitCode.ok, whole.talk)
  assert.doesNotMatch(whole.out, /warning/)
  // An agent that happens to run here is not to answer.
  const env = { SVC_SELF_TELEMETRY_LISTEN: '127.0.0.1:1', SVC_SELF_TELEMETRY_ADMIN_SOCKET: '' }
  const diff = await svc(['config', '--diff', '--json', '--config', uncommented], { env })
  const { keys } = JSON.parse(diff.out) as { keys: { key: string; origin: string }[] }
  assert.deepEqual(
    keys.filter(({ origin }) => !(origin in env)),
    [],
  )
})

test('the manual has every command, flag and exit code, and is set without a complaint', {
  skip: withoutGroff,
}, async () => {
  const { root: staged } = await builtPackages()
  const page = gunzipSync(readFileSync(join(staged, 'usr/share/man/man1/svc.1.gz')))
  const { stdout, stderr, status } = spawnSync('groff', ['-man', '-Tascii', '-P-c', '-ww', '-rLL=200n'], {
    input: page,
    encoding: 'utf8',
  })
  assert.equal(status, 0)
  assert.equal(stderr, '')
  const text = stdout.replaceAll(/.\x08/g, '')
  for (const { name, flags, foreignFlags } of commands) {
    assert.ok(text.includes(`svc ${name}`), name)
    if (!foreignFlags)
      for (const flag of [...flags, ...everywhere]) assert.ok(text.includes(`--${flag.name}`), flag.name)
  }
  for (const code of Object.values(ExitCode)) assert.match(text, new RegExp(`^ +${code} +\\S`, 'm'))
  for (const path of ['/etc/svc/config.yaml', '/var/lib/svc', 'SVC_<KEY>', 'OTEL_EXPORTER_OTLP_*'])
    assert.ok(text.includes(path), path)
})

test('sums, and the bill of materials of a program, are what lies beside them', async () => {
  const { directory, bill, deb, tarball, root: staged } = await builtPackages()
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: directory })
  const sums = readFileSync(join(directory, 'SHA256SUMS'), 'utf8')
  for (const file of [bill, deb, tarball]) assert.ok(sums.includes(`  ${basename(file)}\n`))
  const document = JSON.parse(readFileSync(bill, 'utf8')) as BillOfMaterials
  checkBillOfMaterials(document)
  const named = new Set(
    document.components.map(({ group, name }) => (group === undefined ? name : `${group}/${name}`)),
  )
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: object
  }
  for (const name of ['node', 'libbpf1', 'libelf1', 'zlib1g', 'preact', ...Object.keys(dependencies)])
    assert.ok(named.has(name), name)
  for (const { hashes, properties } of document.components)
    for (const { alg, content } of hashes ?? [])
      if (alg === 'SHA-256') assert.equal(sumOf(join(staged, 'usr/lib/svc', properties![0]!.value)), content)
})

test('the scripts of the package are plain sh', async context => {
  const { deb } = await builtPackages()
  const directory = scratch(context)
  execFileSync('dpkg-deb', ['--control', deb, join(directory, 'control')])
  for (const name of ['postinst', 'prerm', 'postrm']) {
    const file = join(directory, 'control', name)
    const { stderr } = spawnSync('dash', ['-n', file], { encoding: 'utf8' })
    assert.equal(stderr, '', name)
  }
})

test('the .rpm puts the same files on a host as the .deb, and takes all of them away', {
  skip: onlyInSoak || withoutRoot || withoutRpmbuild,
}, async context => {
  const { staged } = await builtPackages()
  const directory = scratch(context)
  const rpm = writeRpmPackage({ ...staged, directory, effort: 'fast' })
  const host = join(directory, 'host')
  // Debian's rpm keeps its books elsewhere, and says that it is not meant for this.
  const how = ['--root', host, '--dbpath', '/var/lib/rpm', '--nodeps', '--noscripts']
  const call = (...words: string[]) => execFileSync('rpm', [...how, ...words], { stdio: 'pipe' })
  mkdirSync(host)
  call('--install', rpm)
  const isOwn = (path: string) => !path.startsWith('var/lib/rpm/')
  const sums = (top: string, paths: readonly string[]) =>
    paths.map(path => [path, path === 'usr/bin/svc' ? readlinkSync(join(top, path)) : sumOf(join(top, path))])
  const renamed = (path: string) => path.replace('zsh/vendor-completions', 'zsh/site-functions')
  const expected = sums(staged.root, pathsBelow(staged.root)).map(([path, sum]) => [renamed(path!), sum])
  assert.deepEqual(sums(host, pathsBelow(host).filter(isOwn)), expected.sort())
  call('--erase', 'svc')
  const left = readdirSync(host, { recursive: true, encoding: 'utf8' })
  assert.deepEqual(
    left.filter(path => path.split('/').includes('svc')),
    [],
  )
})

test('a .deb is installed, runs, is upgraded with its configuration kept, and leaves nothing', {
  skip: withoutRoot,
}, async context => {
  const packages = await builtPackages()
  const system = await openRoot(context, '/')
  await lifeOfAPackage(system, packages.deb, packages.deb, ['dpkg', '--install'])
})

test('the archive runs from any directory, of a user without rights', {
  skip: withoutRoot,
}, async context => {
  const { tarball } = await builtPackages()
  const directory = scratch(context)
  chmodSync(directory, 0o755)
  execFileSync('tar', ['-xzf', tarball, '-C', directory])
  const [name] = readdirSync(directory)
  const program = join(directory, name!, 'bin/svc')
  const nobody = [
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    '--inh-caps=-all',
    '--bounding-set=-all',
    '--no-new-privs',
  ]
  const port = await freePort()
  const child = spawn('setpriv', [...nobody, program, 'run'], {
    cwd: directory,
    env: { PATH: '/usr/bin:/bin', ...(await ownPlaces(port)) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  await whileItRuns(child, async said => {
    await until(
      () => `it is healthy:\n${said()}`,
      30_000,
      async () => (await ask(port, '/healthz')).status === 200,
    )
    const { text } = await ask(port, '/ready')
    assert.match(text, /ebpf/)
    assert.equal(readlinkSync(`/proc/${child.pid}/exe`), join(directory, name!, 'runtime/bin/node'))
  })
})

test('in a fresh Debian: apt installs it, systemd takes its unit, a newer version replaces it', {
  skip: onlyInSoak || withoutRoot,
}, async context => {
  const fresh = debianRoot()
  assert.ok(fresh, 'debootstrap made no root: see build/peers')
  const [first, second] = [(await builtPackages()).deb, (await builtPackages('99.1.0')).deb]
  const system = await openRoot(context, fresh)
  const libraries = readdirSync(join(fresh, 'usr/lib', names[architecture].triplet))
  assert.deepEqual(
    libraries.filter(name => name.startsWith('libbpf')),
    [],
  )
  await lifeOfAPackage(system, first, second, ['apt-get', 'install', '-y', '-qq'])
  // A system without systemd-sysusers.
  rmSync(join(system.path, 'usr/bin/systemd-sysusers'))
  const accounts = accountsOf(system)
  assert.equal(system.run('dpkg', ['--install', '/tmp/first.deb']).code, 0)
  assert.match(system.run('getent', ['passwd', 'svc']).out, /^svc:.*:\/var\/lib\/svc:/)
  assert.equal(system.run('dpkg', ['--purge', 'svc']).code, 0)
  assert.deepEqual(accountsOf(system), accounts)
})

test('the same sources give the same bytes', { skip: onlyInSoak }, async context => {
  const options = {
    architecture,
    dist: join(root, 'dist'),
    epoch: sourceEpoch(),
  } as const
  const sums: string[] = []
  for (const [name, mask] of [
    ['one', 0o022],
    ['another', 0o077],
  ] as const) {
    const directory = scratch(context)
    const before = process.umask(mask)
    try {
      const staged = await stagePackage({ ...options, directory: join(directory, name) })
      sums.push(
        readFileSync(
          writeChecksums(directory, [
            ...writePackages(staged, directory, 'fast'),
            ...(withoutRpmbuild ? [] : [writeRpmPackage({ ...staged, directory, effort: 'fast' })]),
          ]),
          'utf8',
        ),
      )
    } finally {
      process.umask(before)
    }
  }
  assert.equal(sums[1], sums[0])
})

/** Installs one package, uses it, puts another in its place, and takes that away. */
async function lifeOfAPackage(
  system: ThrowawayRoot,
  first: string,
  second: string,
  install: readonly string[],
): Promise<void> {
  const [command, ...words] = install as [string, ...string[]]
  const put = (deb: string, name: string) => {
    copyFileSync(deb, join(system.path, 'tmp', name))
    const { code, out, talk } = system.run(command, [...words, `/tmp/${name}`])
    assert.equal(code, 0, `${out}\n${talk}`)
    return out
  }
  // Else every package makes dpkg read all manuals anew.
  rmSync(join(system.path, 'var/lib/man-db/auto-update'), { force: true })
  const accounts = accountsOf(system)
  const said = put(first, 'first.deb')
  for (const hint of ['svc doctor', 'sudo svc ui', '/etc/svc/config.yaml', 'systemctl status svc'])
    assert.ok(said.includes(hint), said)
  const verified = system.run('dpkg', ['--verify', 'svc'])
  assert.deepEqual(verified, { code: 0, out: '', talk: '' })
  assert.match(system.run('svc', ['version']).out, /^svc /)
  assert.equal(system.run('svc', ['validate']).code, 0)
  assert.match(system.run('getent', ['passwd', 'svc']).out, /^svc:.*:\/var\/lib\/svc:/)
  // Other units of the system are not ours to judge.
  const complaints = system.run('systemd-analyze', ['verify', '--man=no', 'svc.service']).talk
  assert.deepEqual(
    complaints.split('\n').filter(line => line.includes('svc')),
    [],
  )
  await useOf(system)
  const changed = 'log_level: warn\n'
  appendFileSync(join(system.path, 'etc/svc/config.yaml'), changed)
  assert.doesNotMatch(put(second, 'second.deb'), /svc doctor/)
  assert.ok(readFileSync(join(system.path, 'etc/svc/config.yaml'), 'utf8').endsWith(changed))
  const configured = () => system.run('sh', ['-c', debianScripts.postinst!, 'postinst', 'configure']).talk
  assert.doesNotMatch(configured(), /warning/)
  system.run('usermod', ['--shell', '/bin/sh', 'svc'])
  assert.match(configured(), /warning: the user svc already existed/)
  system.run('usermod', ['--shell', '/usr/sbin/nologin', 'svc'])
  assert.equal(system.run('dpkg', ['--remove', 'svc']).code, 0)
  assert.deepEqual(
    system.changes().added.filter(path => /^etc\/svc/.test(path)),
    ['etc/svc', 'etc/svc/config.yaml'],
  )
  for (let i = 0; i < 2; i++) {
    const purged = system.run('dpkg', ['--purge', 'svc'])
    assert.equal(purged.code, 0, purged.talk)
  }
  const { added, removed } = system.changes()
  assert.deepEqual(
    added.filter(path => !books.test(path)),
    [],
  )
  // What agents that ran here without a package left is its state, too.
  const own = /^(var\/lib|run)\/svc$|^var\/lib\/man-db\/auto-update$/
  assert.deepEqual(
    removed.filter(path => !books.test(path) && !own.test(path)),
    [],
  )
  assert.deepEqual(accountsOf(system), accounts)
  // A user of the administrator's that happens to be called so, and a state directory that is mounted.
  const others = `useradd --system --shell /bin/sh --home-dir /srv/svc svc
    mkdir /var/lib/svc && mount -t tmpfs svc /var/lib/svc && touch /var/lib/svc/queue`
  assert.equal(system.run('sh', ['-e', '-c', others]).code, 0)
  const { code, talk } = system.run('sh', ['-c', debianScripts.postrm!, 'postrm', 'purge'])
  assert.equal(code, 0, talk)
  assert.match(system.run('getent', ['passwd', 'svc']).out, /^svc:/)
  assert.match(system.run('getent', ['group', 'svc']).out, /^svc:/)
  assert.deepEqual(readdirSync(join(system.path, 'var/lib/svc')), [])
  assert.equal(system.run('sh', ['-e', '-c', 'umount /var/lib/svc; rmdir /var/lib/svc; userdel svc']).code, 0)
}

/** The agent of the installed files alone: it sees a request, and says what it can do. */
async function useOf(system: ThrowawayRoot): Promise<void> {
  const server = createServer((_, response) => response.end('well'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const port = await freePort()
  const served = (server.address() as AddressInfo).port
  const env = { ...(await ownPlaces(port)), SVC_AGENT_EBPF_NETWORK_INCLUDE_PORTS: String(served) }
  try {
    const agent = system.start('svc', ['run'], env)
    await whileItRuns(agent, async said => {
      await until(
        () => `it is healthy:\n${said()}`,
        30_000,
        async () => (await ask(port, '/healthz')).status === 200,
      )
      await until(
        () => `it sees a request:\n${said()}`,
        30_000,
        async () => {
          await ask(served, '/well')
          const { text } = await ask(port, '/metrics')
          return /^svc_spans_collected(_total)?\{.*\} [1-9]/m.test(text)
        },
      )
      assert.match(readlinkSync(`/proc/${agent.pid}/exe`), /\/usr\/lib\/svc\/runtime\/bin\/node$/)
      const top = system.run('svc', ['top', '--once', '--json'], env)
      assert.equal(top.code, 0, top.talk)
    })
    const doctor = system.run('svc', ['doctor', '--json'], env)
    assert.ok(Array.isArray((JSON.parse(doctor.out) as { groups: unknown[] }).groups), doctor.out)
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
}

/** Runs `body` while a program runs, and ends that. */
async function whileItRuns(
  child: ReturnType<ThrowawayRoot['start']>,
  body: (said: () => string) => Promise<void>,
): Promise<void> {
  let said = ''
  const ended = new Promise<number | null>(resolve => child.once('close', code => resolve(code)))
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', chunk => {
      said += chunk
    })
  try {
    await body(() => said)
  } finally {
    child.kill('SIGTERM')
    assert.equal(await ended, 0, said)
  }
}

/** Variables by which an agent takes no port that another one on this host may have. */
async function ownPlaces(port: number): Promise<Record<string, string>> {
  return {
    SVC_SELF_TELEMETRY_LISTEN: `127.0.0.1:${port}`,
    SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS: `127.0.0.1:${await freePort()}`,
  }
}

function ask(port: number, path: string): Promise<{ status: number; text: string }> {
  return new Promise(resolve => {
    const call = get({ host: '127.0.0.1', port, path, agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, text }))
    })
    call.on('error', ({ message }) => resolve({ status: 0, text: message }))
  })
}

function accountsOf(system: ThrowawayRoot): string[] {
  return ['passwd', 'group', 'shadow', 'gshadow'].map(name =>
    readFileSync(join(system.path, 'etc', name), 'utf8'),
  )
}

async function openRoot(
  context: { after(done: () => unknown): void },
  lower: string,
): Promise<ThrowawayRoot> {
  const system = await ThrowawayRoot.open(lower)
  context.after(() => system.close())
  return system
}

function scratch(context: { after(done: () => void): void }): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-package-'))
  context.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

function sumOf(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
