import type { DrainTurns } from './drain-turns.ts'

/** The part of a `Capture` that follows from the turns in which its records are read. */
export abstract class DrainedCapture {
  protected abstract readonly turns: DrainTurns
  protected detached = false

  drain(): void {
    this.turns.run()
  }

  onPace(paced: (quiet: boolean) => void): void {
    this.turns.onPace = paced
  }

  get busyMs(): number {
    return this.turns.busyMs
  }

  settled(mostMs: number): Promise<void> {
    return this.turns.settled(mostMs)
  }

  get sinceDrainMs(): number {
    return this.detached ? 0 : this.turns.sinceMs
  }

  get reachedMs(): number {
    return this.turns.reachedMs
  }

  get reachedNs(): number {
    return this.turns.reachedNs
  }
}
