import { type Batch, type Receipt, SendError } from '../../foundation/model/batch.ts'
import { type Compression, recompress } from './compression.ts'

/**
 * Sends to one receiver, with gzip once it has rejected zstd: OTLP requires servers to support gzip and no other
 * compression, and every batch would otherwise be rejected once.
 */
export class ZstdFallback {
  #refused = false

  /** Calls `send` with the batch to send, again with gzip if zstd was rejected. `send` rejects with a `SendError`. */
  async run(
    batch: Batch,
    compression: Compression,
    send: (batch: Batch) => Promise<Receipt>,
  ): Promise<Receipt> {
    const chosen = this.#refused && compression === 'zstd' ? 'gzip' : compression
    const compressed = await recompress(batch, chosen)
    try {
      const receipt = await send(compressed)
      return compressed.encoding !== batch.encoding && this.#refused ? warned(receipt) : receipt
    } catch (error) {
      if (compressed.encoding !== 'zstd' || !refusesEncoding(error)) throw error
    }
    const receipt = await send(await recompress(compressed, 'gzip'))
    this.#refused = true
    return warned(receipt)
  }
}

/** gRPC specifies UNIMPLEMENTED, HTTP 415, and the OpenTelemetry Collector answers 400. */
function refusesEncoding(error: unknown): boolean {
  if (!(error instanceof SendError)) return false
  if (error.type === 'http_415') return true
  return (
    (error.type === 'unimplemented' || error.type === 'http_400') &&
    /zstd|encoding|compress/i.test(error.message.slice(0, 4096))
  )
}

function warned(receipt: Receipt): Receipt {
  const message =
    receipt.message ||
    'the receiver does not accept zstd, so svc recompresses each batch; set otlp.compression to gzip'
  return { ...receipt, message }
}
