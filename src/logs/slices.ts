import { setImmediate as turn } from 'node:timers/promises'

/**
 * Maximum counted time of a slice, in milliseconds: another program may have had the CPU, or the machine was paused.
 */
const mostMs = 10

/** Long work in slices of `milliseconds`, with other work between them. */
export class Slices {
  private readonly milliseconds: number
  private beganMs = performance.now()
  private workedMs = 0

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
  }

  /** Starts a slice; time since the last one does not count. */
  begin(): void {
    this.beganMs = performance.now()
  }

  get over(): boolean {
    return performance.now() - this.beganMs >= this.milliseconds
  }

  /** Yields to other work if the slice is over. */
  async rest(): Promise<void> {
    const passedMs = performance.now() - this.beganMs
    if (passedMs < this.milliseconds) return
    this.workedMs += Math.min(mostMs, passedMs)
    await turn()
    this.begin()
  }

  /** Ends the slice early. */
  end(): void {
    this.workedMs += Math.min(mostMs, performance.now() - this.beganMs)
    this.begin()
  }

  /** Approximate time of all slices so far, in milliseconds. */
  get totalMs(): number {
    return this.workedMs + Math.min(mostMs, performance.now() - this.beganMs)
  }
}
