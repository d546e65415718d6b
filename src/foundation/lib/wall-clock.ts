/** Converts the kernel's monotonic clock, in nanoseconds, to microseconds since the Unix epoch. */
export class WallClock {
  #offsetUs = 0

  /** Sets both clocks at one moment. Call every few seconds, as the wall clock is adjusted. */
  set(monotonicNs: number, realtimeUs: number): void {
    this.#offsetUs = realtimeUs - monotonicNs / 1000
  }

  microseconds(timeNs: number): number {
    return timeNs / 1000 + this.#offsetUs
  }
}
