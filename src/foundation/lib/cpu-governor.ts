// Holds the agent to its CPU: what costs most does less until the whole is within the limit.

/** A part of the agent that can do less. */
export interface CpuLever {
  /** Time that the part took since the start, in milliseconds, about. Only compared with that of other levers. */
  costMs(): number
  /** Does less by one step. False: it cannot, or does the least already. */
  lower(): boolean
  /** Takes back its last step. False: it does all that the configuration says. */
  raise(): boolean
  /** What it leaves out now, as a sentence without its full stop; '' where it leaves out nothing. */
  readonly effect: string
}

interface Part {
  readonly name: string
  readonly lever: CpuLever
  /** As of the last change. */
  costMs: number
}

export interface ReducedPart {
  readonly name: string
  readonly steps: number
  readonly effect: string
}

export interface CpuChange {
  readonly name: string
  readonly lowered: boolean
  readonly effect: string
}

/** Readings that a decision rests on, a second apart: all of them are from after the last change. */
const readings = 20
/** A burst of a few seconds is no load: what comes in it is still handed on. */
const fewest = 10
/** Below this part of the limit something may be raised again. */
const calm = 0.7
const firstHold = 30
const longestHold = 600
/** A step down this soon after a step up says that the step up was too early. Readings. */
const relapse = 60

/**
 * Decides once a second. Above the limit, the part that cost most since the last change does one step less. Well below it
 * for a while, the last step is taken back; a step back that led above the limit again makes the next wait twice as long.
 */
export class CpuGovernor {
  readonly limitCores: number
  readonly #parts: Part[] = []
  /** What was lowered, the last one at the end: one entry for each step. */
  readonly #steps: Part[] = []
  #window: number[] = []
  #hold = firstHold
  #sinceChange = 0
  #wasRaised = false
  #changes = 0

  constructor(limitCores: number) {
    this.limitCores = limitCores
  }

  /** `name`: of the part, for people and for the label `part`. */
  register(name: string, lever: CpuLever): void {
    this.#parts.push({ name, lever, costMs: lever.costMs() })
  }

  /** Cores, over the last seconds. */
  get usedCores(): number {
    return mean(this.#window)
  }

  /** Steps down since the start. */
  get changes(): number {
    return this.#changes
  }

  get lowered(): ReducedPart[] {
    return [...new Set(this.#steps)].map(part => ({
      name: part.name,
      steps: this.#steps.filter(each => each === part).length,
      effect: part.lever.effect,
    }))
  }

  /** Takes the CPU of the last second, in cores. Returns what was changed, if anything. */
  look(usedCores: number): CpuChange | undefined {
    this.#window.push(usedCores)
    if (this.#window.length > readings) this.#window.shift()
    this.#sinceChange++
    if (this.#window.length < fewest) return undefined
    const used = this.usedCores
    if (used > this.limitCores) return this.#lower()
    if (used > this.limitCores * calm || this.#window.length < readings) return undefined
    if (this.#steps.length === 0 || this.#sinceChange < this.#hold) return undefined
    return this.#raise()
  }

  #lower(): CpuChange | undefined {
    const spent = ({ lever, costMs }: Part) => lever.costMs() - costMs
    for (const part of this.#parts.toSorted((one, other) => spent(other) - spent(one))) {
      if (!part.lever.lower()) continue
      if (this.#wasRaised && this.#sinceChange < relapse) this.#hold = Math.min(longestHold, this.#hold * 2)
      else if (this.#steps.length === 0) this.#hold = firstHold
      this.#steps.push(part)
      this.#changes++
      return this.#changed(part, true)
    }
    return undefined
  }

  #raise(): CpuChange | undefined {
    const part = this.#steps.pop()!
    part.lever.raise()
    return this.#changed(part, false)
  }

  #changed({ name, lever }: Part, lowered: boolean): CpuChange {
    this.#wasRaised = !lowered
    this.#sinceChange = 0
    this.#window = []
    for (const part of this.#parts) part.costMs = part.lever.costMs()
    return { name, lowered, effect: lever.effect }
  }
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
