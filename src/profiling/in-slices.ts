import { setImmediate as turn } from 'node:timers/promises'

const sliceMs = 1

/** Cuts long work into slices, between which everything else has its turn. */
export class Slices {
  #beganMs = performance.now()

  /** Whether `rest` is due. */
  get over(): boolean {
    return performance.now() - this.#beganMs > sliceMs
  }

  /** Lets the others go first. */
  async rest(): Promise<void> {
    await turn()
    this.#beganMs = performance.now()
  }
}

/** The bytes of a text that comes in parts, each of which is quickly made. */
export async function bytesInSlices(parts: Iterable<string>): Promise<Buffer> {
  const slices = new Slices()
  const done: Buffer[] = []
  let text = ''
  for (const part of parts) {
    text += part
    if (text.length < 16_384) continue
    done.push(Buffer.from(text))
    text = ''
    if (slices.over) await slices.rest()
  }
  done.push(Buffer.from(text))
  return Buffer.concat(done)
}
