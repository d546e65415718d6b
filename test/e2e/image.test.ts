// owns: host
// The image: what is in it, and, in a soak, that Docker runs it by the very command of docs/docker.md.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import type { MapLine } from '../../src/view/api/ui/documents.ts'
import { dockerRun } from '../../tools/deploy/docker.ts'
import { writeImage } from '../../tools/package/image.ts'
import { startOf } from '../../tools/package/image-launcher.ts'
import { sourceEpoch } from '../../tools/package/release.ts'
import { stagePackage } from '../../tools/package/write.ts'
import { builtPackages } from '../helpers/built-packages.ts'
import { debianProgram, withoutProgram } from '../helpers/debian-program.ts'
import { withoutRoot } from '../helpers/host-needs.ts'
import { type ImageConfig, programsIn, unpackImage } from '../helpers/image-content.ts'
import { NewerDockerd, withoutNewerDocker } from '../helpers/newer-dockerd.ts'
import { startReceiver } from '../helpers/otlp-receiver.ts'
import { freePort, Program, until } from '../helpers/program.ts'
import { onlyInSoak, soak } from '../helpers/soak.ts'

const compose = soak
  ? debianProgram({
      package: 'docker-compose',
      path: 'usr/libexec/docker/cli-plugins/docker-compose',
      suite: 'trixie',
    })
  : undefined
const root = resolve(import.meta.dirname, '../..')
const directory = mkdtempSync(join(tmpdir(), 'svc-image-test-'))
after(() => rmSync(directory, { recursive: true, force: true }))
let made: Promise<string> | undefined

/** The archive, made once, of the tree that the tests of packages have. */
function archive(): Promise<string> {
  made ??= builtPackages().then(({ staged }) => writeImage({ ...staged, directory, effort: 'fast' }))
  return made
}

async function makeArchive(name: string): Promise<string> {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
  const at = join(directory, name)
  const options = {
    directory: join(at, 'root'),
    architecture,
    dist: join(root, 'dist'),
    epoch: sourceEpoch(),
  } as const
  return writeImage({ ...(await stagePackage(options)), directory: at, effort: 'fast' })
}

test('the image has svc and the C library, and nothing else that starts a program', {
  skip: withoutRoot,
}, async t => {
  const { config }: ImageConfig = unpackImage(await archive(), join(directory, 'taken apart'))
  const image = join(directory, 'taken apart/root')

  await t.test('no shell is in it', () => {
    const triple = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
    const libraries = new RegExp(`^usr/lib/${triple}-linux-gnu/(ld-linux-.*|libc\\.so\\.6)$`)
    assert.deepEqual(
      programsIn(image)
        .filter(path => !libraries.test(path))
        .toSorted(),
      [
        'usr/lib/svc/bin/svc',
        'usr/lib/svc/dist/svc-decode',
        'usr/lib/svc/dist/svc-probe',
        'usr/lib/svc/runtime/bin/node',
      ],
    )
  })

  await t.test('its launcher starts the runtime as bin/svc does', () => {
    const { environment, flags } = startOf(readFileSync(join(root, 'bin/svc'), 'utf8'))
    const tell =
      'console.log(JSON.stringify({ flags: process.execArgv, args: process.argv.slice(2), env: process.env }))'
    const said = inside(image, `cat >"$1/usr/lib/svc/dist/svc.cjs" <<'END'\n${tell}\nEND\n`, ['a b', '--c'])
    assert.deepEqual(said.flags, flags)
    assert.deepEqual(said.args, ['a b', '--c'])
    for (const each of environment) {
      const [name, value] = each.split('=')
      assert.equal(said.env[name!], value)
    }
  })

  await t.test('it says what it is', () => {
    assert.deepEqual(config.Entrypoint, ['/usr/bin/svc'])
    assert.equal(config.User, '0:0')
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
    const labels = config.Labels as Record<string, string>
    assert.equal(labels['org.opencontainers.image.version'], version)
    assert.ok(existsSync(join(image, 'usr/share/doc/svc/copyright')))
  })
})

interface Told {
  readonly flags: readonly string[]
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Runs the image's svc in its root, with mounts that go with it. `before` is a script that may change the root. */
function inside(image: string, before: string, args: readonly string[]): Told {
  const script = `${before}mount -t proc proc "$1/proc" && exec chroot "$@"`
  const how = ['--mount', 'sh', '-c', script, 'sh', image, '/usr/bin/svc', ...args]
  const { status, stdout, stderr } = spawnSync('unshare', how, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  })
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout) as Told
}

test('the command of docs/docker.md is the one that the needs of svc give', () => {
  assert.equal(documented(), dockerRun())
})

function documented(): string {
  const page = readFileSync(join(root, 'docs/docker.md'), 'utf8')
  return /^docker run --detach[^`]+(?=\n```$)/m.exec(page)![0]
}

test('the same sources make the same image', { skip: onlyInSoak }, async () => {
  const digest = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')
  assert.equal(digest(await makeArchive('second')), digest(await archive()))
})

interface DoctorReport {
  readonly groups: readonly {
    readonly checks: readonly { readonly name: string; readonly state: string; readonly fault?: string }[]
  }[]
}

/** What does not work, by name and fault. */
function faults(text: string): string[] {
  const { groups } = JSON.parse(text) as DoctorReport
  const all = groups.flatMap(({ checks }) => checks)
  return all
    .filter(({ state }) => state === 'missing' || state === 'limited')
    .map(({ name, fault }) => `${name}: ${fault}`)
}

/** Variables that keep the agent from ports of this host's. */
function agentSettings(ports: { readonly self: number; readonly host: number }): string[] {
  return [
    `SVC_SELF_TELEMETRY_LISTEN=127.0.0.1:${ports.self}`,
    `SVC_AGENT_NODEEXPORTER_LISTEN_ADDRESS=127.0.0.1:${ports.host}`,
  ]
}

test('Docker runs it as documented, and with less', {
  skip: withoutNewerDocker,
}, async t => {
  const dockerd = await NewerDockerd.start()
  t.after(() => dockerd.stop())
  const receiver = await startReceiver({ keep: true })
  t.after(() => receiver.close())
  await dockerd.docker('load', '--input', await archive())
  const ports = { self: await freePort(), host: await freePort() }
  const settings = [...agentSettings(ports), `OTEL_EXPORTER_OTLP_ENDPOINT=http://${receiver.endpoint}`]
  const words = documented().replaceAll('\\\n', '').split(/\s+/).slice(1)
  await dockerd.docker(...words.slice(0, -1), ...settings.flatMap(each => ['--env', each]), words.at(-1)!)
  const page = async (port: number, path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()
  const log = async () => (await dockerd.ask('logs', 'svc')).talk
  let said = ''
  await until(
    () => `the agent is ready; it says:\n${said}`,
    60_000,
    async () => {
      said = await log()
      return fetch(`http://127.0.0.1:${ports.self}/ready`).then(
        answer => answer.ok,
        () => false,
      )
    },
  )

  await t.test('spans of a server of the host, with its name', async () => {
    const server = await Program.start('shop-node.ts', { port: 0 })
    t.after(() => server.kill())
    await until('there is a span of the server', 60_000, async () => {
      await page(server.ready.port, '/items/17').catch(() => '')
      return receiver.lines.some(
        ({ signal, attributes, resource }) =>
          signal === 'traces' &&
          (attributes as Record<string, unknown>)['server.port'] === server.ready.port &&
          (resource as Record<string, unknown>)['process.pid'] === server.pid,
      )
    })
  })

  await t.test('metrics of the host and of no container', async () => {
    const text = await page(ports.host, '/metrics')
    assert.match(text, /^node_filesystem_size_bytes\{[^}]*mountpoint="\/"/m)
    const name = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))![1]!
    assert.ok(text.includes(`pretty_name="${name}"`), 'the system is that of the host')
  })

  await t.test('containers, itself among them', async () => {
    await until('it follows Docker', 60_000, async () => {
      const { docker } = JSON.parse(await page(ports.self, '/status/discovery')) as {
        readonly docker: { readonly connected: boolean; readonly containers: number }
      }
      return docker.connected && docker.containers === 1
    })
  })

  await t.test('its doctor finds nothing to fix', async () => {
    assert.deepEqual(faults((await dockerd.ask('exec', 'svc', 'svc', 'doctor', '--json')).out), [])
  })

  await t.test('nothing is written but to its volumes', async () => {
    const changed = (await dockerd.docker('diff', 'svc')).split('\n').map(line => line.slice(2))
    const mounted = words
      .filter(word => word.startsWith('/') && word.includes(':'))
      .map(word => word.split(':')[1]!)
    const others = changed.filter(
      path => path !== '' && !mounted.some(place => `${place}/`.startsWith(`${path}/`)),
    )
    assert.deepEqual(others, [])
  })

  await t.test('it ends in time, with nothing lost', async () => {
    await dockerd.docker('stop', 'svc')
    assert.equal(await dockerd.docker('inspect', '--format', '{{.State.ExitCode}}', 'svc'), '0')
  })

  await t.test('with no rights and no mounts it lives, and says what is off', async () => {
    await dockerd.docker(
      ...[
        'run',
        '--detach',
        '--name',
        'bare',
        '--cap-drop',
        'ALL',
        '--read-only',
        '--network',
        'none',
        'svc',
      ],
    )
    let last = ''
    await until(
      () => `it says what it lacks: ${last}`,
      60_000,
      async () => {
        last = (await dockerd.ask('exec', 'bare', 'svc', 'status')).out
        return /not permitted: CAP_BPF and CAP_PERFMON missing/.test(last)
      },
    )
    const missing = faults((await dockerd.ask('exec', 'bare', 'svc', 'doctor', '--json')).out)
    for (const each of ['eBPF programs: capabilities', 'host pid namespace: own'])
      assert.ok(missing.includes(each), `${each} is among ${missing.join(', ')}`)
    assert.equal(await dockerd.docker('inspect', '--format', '{{.State.Running}}', 'bare'), 'true')
  })

  await t.test('host metrics alone', async () => {
    await dockerd.docker(
      ...['run', '--detach', '--name', 'host', '--cap-drop', 'ALL', '--read-only', '--network', 'host'],
      ...['svc', 'node-exporter', `--web.listen-address=127.0.0.1:${ports.host}`],
    )
    await until('it answers', 60_000, () =>
      page(ports.host, '/metrics').then(
        text => text.includes('node_cpu_seconds_total'),
        () => false,
      ),
    )
  })

  await t.test(
    'the demo in Compose: whose services they are',
    { skip: withoutProgram(compose, 'docker-compose') },
    async () => {
      const shop = {
        SHOP_PORT: `${await freePort()}`,
        ORDERS_PORT: `${await freePort()}`,
        STOCK_PORT: `${await freePort()}`,
      }
      const override = join(directory, 'override.yaml')
      writeFileSync(override, JSON.stringify({ services: { svc: { environment: agentSettings(ports) } } }))
      const files = ['--file', join(root, 'deploy/demo/compose.yaml'), '--file', override]
      const run = (...args: string[]) => {
        const env = { ...process.env, ...shop, DOCKER_HOST: `unix://${dockerd.socket}` }
        const { status, stderr } = spawnSync(compose!, [...files, ...args], { env, encoding: 'utf8' })
        assert.equal(status, 0, stderr)
      }
      await dockerd.docker('rm', '--force', 'host')
      run('up', '--detach')
      let map: MapLine | undefined
      await until(
        () => `the map has what the demo asks: ${JSON.stringify(map)}`,
        120_000,
        async () => {
          map = await page(ports.self, '/ui/api/map').then(
            text => JSON.parse(text) as MapLine,
            () => undefined,
          )
          const name = (id: string) =>
            map!.nodes.find(node => node.id === id && node.namespace === 'demo')?.name
          return map?.edges.some(({ from, to }) => name(from) === 'orders' && name(to) === 'stock') === true
        },
      )
      run('down', '--volumes')
    },
  )
})
