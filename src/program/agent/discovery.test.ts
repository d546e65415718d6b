import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { FakeContainerd } from '../../../test/helpers/fake-containerd.ts'
import { until } from '../../../test/helpers/program.ts'
import { silentLogger } from '../../../test/helpers/silent-logger.ts'
import { type Config, defaults } from '../../config/index.ts'
import { Discovery } from './discovery.ts'

const waitMs = 20_000
const idOf = (digit: string) => digit.repeat(64)

/** A host with Docker's files, and nobody to ask. */
class Host {
  readonly rootfs = mkdtempSync(join(tmpdir(), 'svc-discovery-'))

  constructor(t: TestContext) {
    t.after(() => rmSync(this.rootfs, { recursive: true }))
  }

  write(id: string, name: string): void {
    const directory = join(this.rootfs, 'var/lib/docker/containers', id)
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, 'config.v2.json'), JSON.stringify({ Name: `/${name}`, Config: {} }))
  }

  remove(id: string): void {
    rmSync(join(this.rootfs, 'var/lib/docker/containers', id), { recursive: true })
  }

  config(change: Partial<Config['agent']['discovery']> = {}): Config {
    const config = defaults()
    const { agent } = config
    const { nodeexporter } = agent
    const quiet = { interval: 20, detect_kubernetes: false, detect_cloud: false }
    const docker = { ...agent.discovery.docker, endpoint: join(this.rootfs, 'docker.sock') }
    return {
      ...config,
      agent: {
        ...agent,
        discovery: { ...agent.discovery, ...quiet, docker, ...change },
        nodeexporter: { ...nodeexporter, path: { ...nodeexporter.path, rootfs: this.rootfs } },
      },
    }
  }

  discovery(t: TestContext, config = this.config()): Discovery {
    const discovery = new Discovery({ config, log: silentLogger, onContainer: () => undefined })
    t.after(() => discovery.stop())
    discovery.start()
    return discovery
  }
}

test('a container that only its files tell of changes and goes with them', async t => {
  const host = new Host(t)
  const { entities } = host.discovery(t)
  for (const digit of ['a', 'b', 'c']) {
    host.write(idOf(digit), digit)
    assert.equal(entities.containerOf(idOf(digit))?.name, digit)
  }
  assert.equal(entities.containerCount, 3)
  host.write(idOf('a'), 'renamed')
  host.remove(idOf('b'))
  await until('the change is known', waitMs, () => entities.containerOf(idOf('a'))?.name === 'renamed')
  await until('one is gone', waitMs, () => entities.containerCount === 2)
  assert.deepEqual([...entities.eachContainer()].map(({ name }) => name).sort(), ['c', 'renamed'])
  assert.equal(entities.containerOf(idOf('b'))?.name, 'b', 'for its last telemetry')
})

test('nothing is read of containers where nobody wants to know', async t => {
  const host = new Host(t)
  host.write(idOf('a'), 'web')
  for (const change of [{ enabled: false }, { detect_docker: false }]) {
    const { entities } = host.discovery(t, host.config(change))
    assert.equal(entities.containerOf(idOf('a')), undefined)
  }
  const discovery = host.discovery(t)
  const { entities } = discovery
  assert.equal(entities.containerOf(idOf('a'))?.name, 'web')
  discovery.prepare(host.config({ enabled: false })).commit()
  assert.equal(entities.containerCount, 0)
})

test('containerd tells of its containers beside Docker, and a daemon that is named is the only one', async t => {
  const host = new Host(t)
  const daemon = await FakeContainerd.start(join(host.rootfs, 'run/containerd/containerd.sock'))
  t.after(() => daemon.close())
  const labels = { 'nerdctl/name': 'cart', team: 'shop' }
  daemon.containers = [{ id: idOf('a'), namespace: 'default', labels, image: 'shop:1.2' }]
  const { docker } = defaults().agent.discovery
  const found = { ...docker, endpoint: '', labels: ['team'] }
  const discovery = host.discovery(t, host.config({ docker: found }))
  const { entities } = discovery
  await until('it is told', waitMs, () => entities.containerOf(idOf('a'))?.labels.get('team') === 'shop')
  const { attributes, service } = entities.surroundings({ id: idOf('a'), runtime: '', podUid: '' })
  const told = (key: string) => attributes.get(key)
  assert.deepEqual(
    [service.name, told('container.name'), told('container.image.name'), told('container.image.tags')],
    ['cart', 'cart', 'shop', ['1.2']],
  )
  assert.equal(told('container.runtime.name'), 'containerd')
  assert.equal(told('container.label.team'), 'shop')
  assert.deepEqual(discovery.faults, [])
  discovery.prepare(host.config()).commit()
  assert.equal(discovery.runtimes?.containerd, undefined)
  assert.equal(entities.containerCount, 0)
  discovery.prepare(host.config({ docker: { ...docker, endpoint: daemon.socket } })).commit()
  assert.equal(discovery.runtimes?.docker, undefined)
  await until('it is told again', waitMs, () => entities.containerCount === 1)
})
