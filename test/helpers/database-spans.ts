import assert from 'node:assert/strict'
import { AgentProcess, largeRing } from './agent-process.ts'
import type { SpanLine, Telemetry } from './telemetry.ts'

/** An agent that looks at the server of one database, and the spans of its clients since they were last asked for. */
export class DatabaseSpans {
  readonly #telemetry: Telemetry
  readonly #port: number
  #agent: AgentProcess
  #known = 0

  private constructor(telemetry: Telemetry, port: number, agent: AgentProcess) {
    this.#telemetry = telemetry
    this.#port = port
    this.#agent = agent
  }

  static async start(telemetry: Telemetry, port: number): Promise<DatabaseSpans> {
    return new DatabaseSpans(telemetry, port, await startAgent(telemetry, port))
  }

  /** Begins anew with another agent. */
  async restart(): Promise<void> {
    await this.#agent.stop()
    this.#telemetry.forget()
    this.#known = 0
    this.#agent = await startAgent(this.#telemetry, this.#port)
  }

  async stop(): Promise<void> {
    await this.#agent.stop()
  }

  /** Waits for so many further spans, and for those that should not be there. */
  async further(wanted: number): Promise<SpanLine[]> {
    await this.#telemetry.arrived(this.#known + wanted, this.#port)
    await this.#telemetry.settle(this.#agent)
    const all = this.#telemetry.spans(this.#port)
    const further = all.slice(this.#known)
    this.#known = all.length
    return further
  }

  /** Holds how many further spans there are of each name and error, and the metric of all of them to the same number. */
  async check(wanted: Readonly<Record<string, number>>): Promise<SpanLine[]> {
    const seen = await this.further(Object.values(wanted).reduce((sum, one) => sum + one, 0))
    const counts: Record<string, number> = {}
    for (const { name, attributes } of seen) {
      const key = [name, attributes['error.type']].filter(Boolean).join(' ')
      counts[key] = (counts[key] ?? 0) + 1
    }
    assert.deepEqual(counts, wanted)
    const counted = this.#telemetry.counted(
      ({ metric, attributes }) =>
        metric === 'db.client.operation.duration' && attributes['server.port'] === this.#port,
    )
    assert.equal(
      counted.reduce((sum, one) => sum + one.count, 0),
      this.#known,
    )
    return seen
  }
}

function startAgent({ endpoint }: Telemetry, port: number): Promise<AgentProcess> {
  return AgentProcess.start({ endpoint, ports: [port], config: { agent: { ebpf: largeRing } } })
}
