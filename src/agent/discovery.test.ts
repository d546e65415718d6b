import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../test/helpers/program.ts'
import { silentLogger } from '../../test/helpers/silent-logger.ts'
import { type Config, defaults } from '../config/index.ts'
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
