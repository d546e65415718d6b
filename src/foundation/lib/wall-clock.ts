/** Turns times of the kernel's monotonic clock, in nanoseconds, into points in time: microseconds since the Unix epoch. */
export class WallClock {
  #offsetUs = 0

  /** Both clocks at one moment. To be called every few seconds, as the wall clock is adjusted. */
  set(monotonicNs: number, realtimeUs: number): void {
    this.#offsetUs = realtimeUs - monotonicNs / 1000
  }

  microseconds(timeNs: number): number {
    return timeNs / 1000 + this.#offsetUs
  }
}
