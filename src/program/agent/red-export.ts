import type { Logger } from '../../foundation/lib/logger.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { Metric } from '../../foundation/model/metric.ts'
import type { Scope } from '../../foundation/model/resource.ts'
import type { ProcessTable } from '../../identity/entities/process-table.ts'
import type { Intake } from '../../pipeline/batcher.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import type { RedTable, ResourceMetrics } from '../../signals/traces/tracing/red.ts'
import { pointType } from './point-type.ts'

export interface RedExportOptions {
  readonly red: RedTable
  readonly processes: ProcessTable
  readonly pipeline: Pick<Pipeline, 'intake'>
  readonly scope: Scope
  /** Brings the kernel's counts up to date. */
  readonly sync: () => void
  readonly log: Pick<Logger, 'error'>
}

/** Exports the request metrics at an interval, in turns, because there may be thousands of processes. */
export class RedExport {
  readonly #options: RedExportOptions
  readonly #intake: Intake<Metric>
  #intervalMs = 0
  /** When the last scheduled export began, or this object was created; of `performance.now()`. */
  #beganMs = performance.now()
  #timer: NodeJS.Timeout | undefined
  #underWay = false
  #stopped = false

  constructor(options: RedExportOptions) {
    this.#options = options
    this.#intake = options.pipeline.intake('metrics', pointTypeAt)
  }

  /** The next export comes one interval after the last one, and so on. */
  every(intervalMs: number): void {
    this.#intervalMs = intervalMs
    clearTimeout(this.#timer)
    const dueMs = this.#beganMs + intervalMs
    this.#timer = setTimeout(() => void this.#inTurns(), Math.max(0, dueMs - performance.now()))
  }

  /** Exports everything at once. */
  now(): void {
    const { red, sync } = this.#options
    sync()
    for (const each of red.collectEach(nowUs)) this.#add(each)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #inTurns(): Promise<void> {
    const { red, processes, sync } = this.#options
    this.#beganMs = performance.now()
    this.every(this.#intervalMs)
    if (this.#underWay) return
    this.#underWay = true
    try {
      await processes.look()
      if (this.#stopped) return
      sync()
      const turn = new Turn()
      for (const each of red.collectEach(nowUs)) {
        this.#add(each)
        if (turn.isOver) await turn.next()
        if (this.#stopped) return
      }
    } catch (error) {
      this.#options.log.error('cannot export request metrics; please report this', { error })
    } finally {
      this.#underWay = false
    }
  }

  #add({ resource, metrics }: ResourceMetrics): void {
    for (const metric of metrics) this.#intake.add(resource, this.#options.scope, metric)
  }
}

/** A processor may add points: they get the type of the last one. */
function pointTypeAt({ name, points }: Metric, at: number): string {
  return pointType(name, points[Math.min(at, points.length - 1)]!.attributes)
}

function nowUs(): number {
  return Date.now() * 1000
}
