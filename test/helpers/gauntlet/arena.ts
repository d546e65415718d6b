// owns: processor
// An agent with its defaults, a bystander whose requests must be counted, and somebody who asks whether it is well.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { AgentProcess } from '../agent-process.ts'
import { freePort, Program, pause, until } from '../program.ts'
import { ResourceGroup } from '../resource-group.ts'
import { client, type SpanLine, server, Telemetry } from '../telemetry.ts'
import { type Attack, attacks } from './attacks.ts'
import { memoryBytes, openFolder, RunningAttack } from './running-attack.ts'

/** Of the unit, deploy/systemd/svc.service. */
const cpuWeight = 200
/** An ordinary user, who attacks nobody. */
const bystanderUser = 65532
const rate = 50
/** What the receiver looks at: the bystander's, and what nobody may send. */
const marker = 'gauntlet-bystander'
const secretLine = `${marker}-secret: what root alone may read\n`

/** What the prober saw of one question: ms, of them those without a processor, and what was wrong. */
type Probe = readonly [tookMs: number, waitedMs: number, fault: string]

/** What was seen in a stretch of time. */
export interface Seen {
  readonly alive: boolean
  /** MiB: at its highest, and at the end. */
  readonly mostMiB: number
  readonly lastMiB: number
  readonly probes: number
  /** Answers of the prober's that were not 200, and errors. */
  readonly failures: readonly string[]
  readonly p99Ms: number
  readonly worstMs: number
  /** The same without the time in which the agent's main thread waited for a processor. */
  readonly worstOwnMs: number
  /** Of the slowest hundredth, the part in which the agent's main thread waited for a processor. */
  readonly waitedPercent: number
}

export function residentMiB(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, 'latin1')
  return Number(/^VmRSS:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1024
}

/** The number of a request of the bystander's, which is the end of its path. */
function numberOf(attributes: SpanLine['attributes']): number {
  return Number(
    String(attributes['url.path'] ?? attributes['url.full'])
      .split('/')
      .at(-1),
  )
}

/** What attackers that were ended leave where profilers look for it. */
function removePerfMaps(): void {
  const users: readonly number[] = attacks.map(({ user }) => user)
  for (const name of readdirSync('/tmp')) {
    const file = join('/tmp', name)
    const found = /^perf-\d+\.map/.test(name) ? lstatSync(file, { throwIfNoEntry: false }) : undefined
    if (found !== undefined && users.includes(found.uid)) rmSync(file, { force: true })
  }
}

export class Arena {
  readonly agent: AgentProcess
  /** Before the first attack. */
  idleMiB = 0
  readonly receiverPort: number
  telemetry: Telemetry | undefined
  /** What attacks say that did not come to attack. */
  readonly faults = new Map<string, string>()
  readonly #directory: string
  readonly #logs: string
  readonly #exporter: number
  /** As systemd has it: the service is a group, and all users together are one. */
  readonly #users = new ResourceGroup({ memoryBytes })
  readonly #service: ResourceGroup
  readonly #server: Program
  readonly #client: Program<object>
  readonly #prober: Program<object>
  #ended = false
  #closed = false
  #most = 0
  readonly #watch: NodeJS.Timeout

  private constructor(
    agent: AgentProcess,
    service: ResourceGroup,
    places: { directory: string; logs: string; exporter: number; receiverPort: number },
    [bystanderServer, bystanderClient, prober]: [Program, Program<object>, Program<object>],
  ) {
    this.agent = agent
    this.#service = service
    this.#directory = places.directory
    this.#logs = places.logs
    this.#exporter = places.exporter
    this.receiverPort = places.receiverPort
    this.#server = bystanderServer
    this.#client = bystanderClient
    this.#prober = prober
    void agent.exited.then(() => {
      this.#ended = true
    })
    this.#watch = setInterval(() => this.#look(), 100)
  }

  /** With a receiver that is away until `receive`. */
  static async open(warmUpMs = 5000): Promise<Arena> {
    const directory = mkdtempSync(join(tmpdir(), 'svc-gauntlet-'))
    chmodSync(directory, 0o711)
    const logs = openFolder(directory)
    const secret = join(directory, 'secret')
    writeFileSync(secret, secretLine, { mode: 0o600 })
    // As hosts have it; here it may be root's alone.
    if (existsSync('/dev/fuse'))
      execFileSync('mknod', ['-m', '666', join(directory, 'fuse'), 'c', '10', '229'])
    const [receiverPort, exporter, port] = [await freePort(), await freePort(), await freePort()]
    const bystanderServer = await Program.start('gauntlet-bystander-server.py', {
      port,
      user: bystanderUser,
    })
    const bystanderClient = await Program.start<object>('gauntlet-bystander-client.py', {
      port,
      rate,
      user: bystanderUser,
    })
    const service = new ResourceGroup({ memoryBytes: totalmem(), cpuWeight })
    const agent = await AgentProcess.start({
      wrapper: service.wrapper,
      endpoint: `127.0.0.1:${receiverPort}`,
      readyStatus: 503,
      defaults: true,
      shipped: true,
      config: {
        agent: {
          logs: { paths: [join(logs, '*.log')] },
          nodeexporter: { listen_address: `127.0.0.1:${exporter}` },
        },
      },
    })
    try {
      await until('everything but the receiver is ready', 120_000, async () => {
        const { checks } = await agent.document<{ checks: Record<string, unknown> }>('/ready')
        return checks.ebpf === 'ok'
      })
    } catch (error) {
      await agent.kill()
      throw error
    }
    const prober = await Program.start<object>('gauntlet-prober.py', { port: agent.port, pid: agent.pid })
    const programs: [Program, Program<object>, Program<object>] = [bystanderServer, bystanderClient, prober]
    const arena = new Arena(agent, service, { directory, logs, exporter, receiverPort }, programs)
    await bystanderClient.ask('go')
    await pause(warmUpMs)
    await prober.ask('') // what it saw of the start
    arena.idleMiB = residentMiB(agent.pid)
    return arena
  }

  #look(): void {
    try {
      this.#most = Math.max(this.#most, residentMiB(this.agent.pid))
    } catch {
      // It has ended.
    }
  }

  /** All of them at once, for so many seconds; one that ends before begins again. Returns what was seen meanwhile. */
  async face(attacks: readonly Attack[], seconds: number): Promise<Seen> {
    const secret = join(this.#directory, 'secret')
    const fuse = join(this.#directory, 'fuse')
    const target = {
      api: this.agent.port,
      exporter: this.#exporter,
      logs: this.#logs,
      secret,
      fuse: existsSync(fuse) ? fuse : '',
    }
    const told = setInterval(() => appendFileSync(secret, secretLine), 200)
    const end = performance.now() + seconds * 1000
    this.#most = 0
    await Promise.all(
      attacks.map(async attack => {
        while (!this.#ended) {
          const left = Math.ceil((end - performance.now()) / 1000)
          if (left < 1) return
          const running = new RunningAttack(attack, Math.min(left, attack.seconds ?? 10), target, this.#users)
          try {
            await Promise.race([running.ended, this.agent.exited, pause(end - performance.now())])
          } finally {
            const said = await running.stop()
            if (said.includes('Traceback')) this.faults.set(attack.name, said)
          }
          if (this.faults.has(attack.name)) return
        }
      }),
    )
    clearInterval(told)
    return this.seen()
  }

  /** Requests of the bystander, from one number up to another, without their two spans. */
  missing(from: number, to: number): number[] {
    const { port } = this.#server.ready
    const sides = ([server, client] as const).map(
      kind => new Set(this.telemetry!.spans(port, kind).map(({ attributes }) => numberOf(attributes))),
    )
    return Array.from({ length: to - from }, (_, i) => from + i).filter(n => sides.some(side => !side.has(n)))
  }

  /** Whether what only root may read was sent. */
  get secretSent(): boolean {
    return this.telemetry!.bodies().some(body => body.includes(marker))
  }

  /** What was seen since it was asked before. */
  async seen(): Promise<Seen> {
    const probes = await this.#prober.ask<readonly Probe[]>('')
    const slowest = probes.toSorted(([a], [b]) => b - a)
    const hundredth = slowest.slice(0, Math.max(1, Math.floor(probes.length / 100)))
    const sum = (of: (probe: Probe) => number) => hundredth.reduce((all, probe) => all + of(probe), 0)
    this.#look()
    const lastMiB = this.#ended ? 0 : residentMiB(this.agent.pid)
    return {
      alive: !this.#ended,
      mostMiB: this.#most,
      lastMiB,
      probes: probes.length,
      failures: probes.map(([, , fault]) => fault).filter(fault => fault !== ''),
      p99Ms: slowest[Math.floor(probes.length / 100)]?.[0] ?? 0,
      worstMs: slowest[0]?.[0] ?? 0,
      worstOwnMs: Math.max(0, ...probes.map(([took, waited]) => took - waited)),
      waitedPercent:
        (100 * sum(([, waited]) => waited)) /
        Math.max(
          1,
          sum(([took]) => took),
        ),
    }
  }

  /** Starts the receiver. */
  async receive(): Promise<void> {
    this.telemetry = await Telemetry.start(this.receiverPort, marker)
  }

  /** Ends the bystander's requests. Returns how many were answered. */
  async quietBystander(): Promise<number> {
    return this.#client.ask<number>('stop')
  }

  /** How many of the bystander's requests its server and its client are said to have had. */
  counted(): readonly [served: number, asked: number] {
    const { telemetry } = this
    if (telemetry === undefined) throw new Error('there is no receiver')
    return [telemetry.servedBy(this.#server.pid), telemetry.askedOf(this.#server.ready.port)]
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    clearInterval(this.#watch)
    await Promise.all([this.#prober.kill(), this.#client.kill(), this.#server.kill()])
    if (!this.#ended) await this.agent.kill()
    await this.telemetry?.close()
    await Promise.all([this.#service.end(), this.#users.end()])
    rmSync(this.#directory, { recursive: true, force: true })
    removePerfMaps()
  }
}
