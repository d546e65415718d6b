import type { BpfObject } from '../../kernel/bpf-object.ts'
import type { Native, PollHandle, RingHandle } from '../../kernel/native.ts'

/** Wakes the agent for the first record after a quiet time (bpf/include/bell.h). */
export class Bell {
  readonly #native: Native
  readonly #ring: RingHandle
  readonly #poll: PollHandle

  /** Calls `rung` at that record, and every two seconds while more follow. */
  constructor(native: Native, object: BpfObject, rung: () => void) {
    this.#native = native
    const map = object.map('bell')
    this.#ring = native.ringOpen(map)
    const records = Buffer.allocUnsafe(4096)
    try {
      this.#poll = native.pollStart(map.fd, () => {
        while (native.ringDrain(this.#ring, records) > 0);
        rung()
      })
    } catch (error) {
      native.ringClose(this.#ring)
      throw error
    }
  }

  close(): void {
    this.#native.pollStop(this.#poll)
    this.#native.ringClose(this.#ring)
  }
}
