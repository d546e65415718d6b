// Health of this host and the agent, second by second.

import { hostname, release } from 'node:os'
import { build } from '../../foundation/lib/build.ts'
import type { OverviewLine } from '../../view/api/ui/documents.ts'
import type { Live } from '../../view/api/ui/source.ts'
import type { DocumentContext } from './document-context.ts'
import { Findings, type OverviewTick } from './findings.ts'
import { lostItems } from './losses.ts'
import { servicePasts } from './services.ts'
import { TopProcesses } from './top-processes.ts'

const everyMs = 1000
/** Maximum points of a line: for a longer history, each is the mean of some seconds. */
const mostPoints = 900
/** Missed seconds that a slow reader still gets. */
const mostMissed = 3
/** Time during which viewers share a result. */
const freshMs = 900

/** The current state, computed once for all viewers. */
class OverviewNow {
  viewers = 0
  readonly #parts: DocumentContext
  readonly #findings: Findings
  readonly #processes: TopProcesses
  #madeMs = Number.NEGATIVE_INFINITY
  #made: Omit<OverviewTick, 'kind' | 'at_ms' | 'values'> | undefined

  constructor(parts: DocumentContext) {
    this.#parts = parts
    this.#findings = new Findings(parts)
    this.#processes = new TopProcesses({ procfs: parts.loaded().config.agent.nodeexporter.path.procfs })
  }

  /** Resolves when there are processes to show. */
  async ready(): Promise<void> {
    if (this.#made === undefined) await this.#processes.look()
  }

  get now(): Omit<OverviewTick, 'kind' | 'at_ms' | 'values'> {
    const nowMs = performance.now()
    if (this.#made !== undefined && nowMs - this.#madeMs < freshMs) return this.#made
    this.#madeMs = nowMs
    // The result is shown the next time.
    void this.#processes.look()
    const pasts = servicePasts(this.#parts)
    this.#made = {
      services: pasts.map(({ service }) => service),
      processes: this.#processes.list.map(({ pid, comm, cpuPercent, rssBytes }) => ({
        pid,
        name: this.#nameOf(pid, comm),
        cpu_percent: cpuPercent,
        rss_bytes: rssBytes,
      })),
      findings: this.#findings.of(pasts, nowMs),
      agent: agentCost(this.#parts),
    }
    return this.#made
  }

  #nameOf(pid: number, comm: string): string {
    const service = this.#parts.processes.known(pid)?.attributes.get('service.name')
    return typeof service === 'string' && service !== '' ? service : this.#parts.shown(comm)
  }
}

const nows = new WeakMap<DocumentContext, OverviewNow>()

export function overview(parts: DocumentContext, seconds: number): Live<OverviewLine> {
  const { vitals } = parts.window
  const shared = nows.get(parts) ?? new OverviewNow(parts)
  nows.set(parts, shared)
  shared.viewers++
  let sent: number | undefined
  return {
    everyMs,
    next: async () => {
      if (sent === undefined) await shared.ready()
      const { newest } = vitals
      if (sent === undefined) {
        sent = newest
        return [start(parts, seconds), tick(parts, shared, newest)]
      }
      const lines: OverviewLine[] = []
      const first = sent < 0 ? newest : Math.max(sent + 1, newest - mostMissed + 1)
      for (let second = first; second > sent && second <= newest; second++)
        lines.push(tick(parts, shared, second))
      sent = newest
      return lines
    },
    close: () => {
      shared.viewers--
      if (shared.viewers === 0) nows.delete(parts)
    },
  }
}

/** Everything before the newest second, which is the first tick. */
function start(parts: DocumentContext, seconds: number): OverviewLine {
  const { vitals, windowMs } = parts.window
  const { fromMs, stepMs, values } = vitals.past(vitals.newest, seconds, mostPoints)
  const { config } = parts.loaded()
  const about = parts.discovery.host.resource.attributes
  const system = [about.get('os.description'), `Linux ${release()}`, about.get('host.arch')]
  return {
    kind: 'start',
    host: {
      name: String(about.get('host.name') ?? hostname()),
      version: build().version,
      mode: config.mode,
      system: system.filter(part => part !== undefined && part !== '').join(' · '),
      window_ms: windowMs,
      redacted: config.self_telemetry.ui.redact,
    },
    from_ms: fromMs,
    step_ms: stepMs,
    series: vitals.series.map((line, i) => ({ ...line, values: values[i]! })),
  }
}

function tick(parts: DocumentContext, shared: OverviewNow, second: number): OverviewLine {
  const { vitals } = parts.window
  return {
    kind: 'tick',
    at_ms: second < 0 ? Date.now() : vitals.timeOf(second),
    values: vitals.values(second),
    ...shared.now,
  }
}

function agentCost({ pipelines, window }: DocumentContext): OverviewTick['agent'] {
  const { agentCpuPercent } = window.vitals.facts
  return {
    cpu_percent: Number.isNaN(agentCpuPercent) ? 0 : Math.round(agentCpuPercent * 10) / 10,
    rss_bytes: process.memoryUsage.rss(),
    dropped: lostItems(pipelines.pipeline),
    window_bytes: window.bytes,
    window_max_bytes: window.maxBytes,
  }
}
