// Keeps the agent within its CPU limit: reduces its most expensive parts until the total is below the limit.

/** A part of the agent that can be reduced. */
export interface CpuLever {
  /** Approximate CPU time of the part since the start, in milliseconds. Only compared with other levers. */
  costMs(): number
  /** Reduces the part by one step. False: it cannot, or is at its minimum. */
  lower(): boolean
  /** Reverts the last step. False: it runs as configured. */
  raise(): boolean
  /** What it omits now, as a sentence without its full stop; '' if nothing. */
  readonly effect: string
}

interface Part {
  readonly name: string
  readonly lever: CpuLever
  /** At the last change. */
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

/** Readings per decision, one second apart, all after the last change. */
const readings = 20
/** A burst of a few seconds is not load yet: its data is still exported. */
const fewest = 10
/** Below this part of the limit a step may be reverted. */
const calm = 0.7
const firstHold = 30
const longestHold = 600
/** A step down within this many readings after a step up means that the step up was too early. */
const relapse = 60

/**
 * Decides once a second. Above the limit, the part with the highest cost since the last change is reduced by one step.
 * When usage stays well below it for a while, the last step is reverted; if that leads above the limit again, the next
 * wait is twice as long.
 */
export class CpuGovernor {
  readonly limitCores: number
  readonly #parts: Part[] = []
  /** Reduced parts, most recent last: one entry per step. */
  readonly #steps: Part[] = []
  #window: number[] = []
  #hold = firstHold
  #sinceChange = 0
  #wasRaised = false
  #changes = 0

  constructor(limitCores: number) {
    this.limitCores = limitCores
  }

  /** `name`: the part's name, for people and for the label `part`. */
  register(name: string, lever: CpuLever): void {
    this.#parts.push({ name, lever, costMs: lever.costMs() })
  }

  /** Cores, averaged over the last seconds. */
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

  /** Takes the CPU usage of the last second, in cores. Returns the change, if any. */
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
