// owns: host
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AgentProcess } from '../helpers/agent-process.ts'
import { Dockerd, withoutDocker } from '../helpers/dockerd.ts'
import type { Line } from '../helpers/otlp-items.ts'
import { type Receiver, startReceiver } from '../helpers/otlp-receiver.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const port = 8080

/** A server, and who asks it five times a second and says so. Both are processes of one container. */
const shop = ['sh', '-c', `httpd -p ${port} -h / && while sleep 0.2; do wget -qO- 127.0.0.1:${port}; done`]
/** One that is over as soon as it was asked once. */
const moment = ['sh', '-c', `httpd -p ${port} -h / && wget -qO- 127.0.0.1:${port} && cat /proc/self/cgroup`]
const busy = ['sh', '-c', 'while true; do :; done']

type Attributes = Readonly<Record<string, unknown>>

class Scene {
  readonly dockerd: Dockerd
  readonly receiver: Receiver
  readonly agent: AgentProcess

  private constructor(dockerd: Dockerd, receiver: Receiver, agent: AgentProcess) {
    this.dockerd = dockerd
    this.receiver = receiver
    this.agent = agent
  }

  static async start(t: TestContext): Promise<Scene> {
    const open: (() => Promise<unknown>)[] = []
    t.after(async () => {
      for (const close of open.reverse()) await close()
    })
    const dockerd = await Dockerd.start()
    open.push(() => dockerd.stop())
    const receiver = await startReceiver({ keep: true })
    open.push(() => receiver.close())
    const agent = await AgentProcess.start({
      endpoint: receiver.endpoint,
      ports: [port],
      config: {
        agent: {
          // Their processes live for a millisecond: only the kernel has the time to say where each was.
          ebpf: { process: { enabled: true } },
          discovery: {
            enabled: true,
            detect_kubernetes: false,
            detect_cloud: false,
            docker: { endpoint: `unix://${dockerd.socket}` },
          },
          logs: { enabled: true, start_at: 'beginning', position_file: `${dockerd.root}/../positions` },
          profiling: { enabled: true, sample_rate: 199, interval: '1s' },
        },
      },
    })
    open.push(() => agent.kill())
    return new Scene(dockerd, receiver, agent)
  }

  lines(signal: string, id: string): Line[] {
    return this.receiver.lines.filter(
      ({ signal: its, name, resource }) =>
        // What the kernel tells of processes comes as logs, too, which have names.
        its === signal && (its !== 'logs' || name === '') && (resource as Attributes)['container.id'] === id,
    )
  }

  /** What came of a signal and of no container, for whoever finds out why it did. */
  others(signal: string): string {
    return this.receiver.lines
      .filter(({ signal: its, resource }) => its === signal && !('container.id' in (resource as object)))
      .slice(-20)
      .map(line => JSON.stringify(line))
      .join('\n')
  }

  /** Resolves when there is something of every signal from a container; checks that all of it says whose it is. */
  async carries(id: string, name: string, signals: readonly string[]): Promise<void> {
    for (const signal of signals) {
      await until(
        () => `there are ${signal} of ${name}, ${id}:\n${this.agent.logText()}\n${this.others(signal)}`,
        60_000,
        () => this.lines(signal, id).length > 0,
      )
      for (const { resource } of this.lines(signal, id)) {
        const { 'container.name': given, 'container.image.name': image, ...rest } = resource as Attributes
        assert.deepEqual([given, image], [name, 'shop'], `${signal}: ${JSON.stringify(resource)}`)
        assert.equal(rest['container.runtime.name'], 'docker')
        assert.deepEqual(rest['container.image.tags'], ['1.2'])
      }
    }
  }
}

interface DiscoveryStatus {
  readonly docker: { readonly enabled: boolean; readonly connected: boolean; readonly containers: number }
}

test('all that comes from a container says which it is, however short it lives', {
  skip: withoutDocker,
}, async t => {
  const scene = await Scene.start(t)
  const { dockerd, agent } = scene
  const status = async () => (await agent.document<DiscoveryStatus>('/status/discovery')).docker
  await until('it follows Docker', 60_000, async () => (await status()).connected)
  const web = await dockerd.container('web', [], shop)

  await t.test('spans, metrics and logs of one that runs', () =>
    scene.carries(web, 'web', ['traces', 'metrics', 'logs']),
  )

  await t.test('profiles of one that is busy', async () => {
    const id = await dockerd.container('mill', [], busy)
    await scene.carries(id, 'mill', ['profiles'])
    await dockerd.docker('kill', id)
  })

  await t.test('spans, metrics and logs of many that are over in a moment', async () => {
    for (let number = 0; number < (soak ? 50 : 6); number++) {
      const name = `moment-${number}`
      const said = await dockerd.docker('run', '--net', 'none', '--name', name, 'shop:1.2', ...moment)
      const id = /[0-9a-f]{64}/.exec(said)![0]
      await scene.carries(id, name, ['traces', 'metrics', 'logs'])
      await dockerd.docker('rm', id)
    }
    const homeless = scene.receiver.lines.filter(
      ({ signal, attributes, resource }) =>
        signal === 'traces' &&
        (attributes as Attributes)['server.port'] === port &&
        (resource as Attributes)['container.id'] === undefined,
    )
    assert.deepEqual(homeless, [])
  })

  await t.test('the new name of one that was renamed', async () => {
    await dockerd.docker('rename', 'web', 'shop')
    await until('a span has the new name', 60_000, () =>
      scene
        .lines('traces', web)
        .some(({ resource }) => (resource as Attributes)['container.name'] === 'shop'),
    )
  })

  await t.test('one that was started by a daemon that was killed and started again', async () => {
    await dockerd.end('SIGKILL')
    await until('the loss is told', 60_000, async () => !(await status()).connected)
    await dockerd.run()
    const id = await dockerd.container('late', [], shop)
    await scene.carries(id, 'late', ['traces', 'metrics', 'logs'])
    await until('it is connected', 60_000, async () => (await status()).connected)
    await until('all three are counted', 60_000, async () => (await status()).containers === 3)
    const metrics = await agent.metrics()
    assert.equal(metrics.sum('svc_discovery_containers'), 3)
    assert.equal(metrics.sum('svc_discovery_connected', 'source="docker"'), 1)
    assert.ok(metrics.sum('svc_profiles_exported_total') > 0)
  })
})
