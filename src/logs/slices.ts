import { setImmediate as turn } from 'node:timers/promises'

/** A slice counts for no more: another program may have had the processor, or the machine stood still. */
const mostMs = 10

/** Long work in slices of `milliseconds`: others have the thread between them. */
export class Slices {
  private readonly milliseconds: number
  private beganMs = performance.now()
  private workedMs = 0

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds
  }

  /** A slice begins; what others did since the last one does not count. */
  begin(): void {
    this.beganMs = performance.now()
  }

  get over(): boolean {
    return performance.now() - this.beganMs >= this.milliseconds
  }

  /** Lets others work, where the slice is over. */
  async rest(): Promise<void> {
    const passedMs = performance.now() - this.beganMs
    if (passedMs < this.milliseconds) return
    this.workedMs += Math.min(mostMs, passedMs)
    await turn()
    this.begin()
  }

  /** The slice ends, as there is no more to do. */
  end(): void {
    this.workedMs += Math.min(mostMs, performance.now() - this.beganMs)
    this.begin()
  }

  /** Milliseconds of work in all slices so far, about. */
  get totalMs(): number {
    return this.workedMs + Math.min(mostMs, performance.now() - this.beganMs)
  }
}
