import { type Batch, type Receipt, SendError } from '../model/batch.ts'
import { type Compression, repack } from './compression.ts'

/**
 * Sends to one receiver, with gzip from the moment on that it refuses zstd: OTLP asks servers to take gzip and no other
 * compression, and a refusal would otherwise cost every batch.
 */
export class ZstdFallback {
  #refused = false

  /** `send` gets the batch as it has to be sent, once more where zstd was refused, and rejects with a `SendError`. */
  async run(
    batch: Batch,
    compression: Compression,
    send: (batch: Batch) => Promise<Receipt>,
  ): Promise<Receipt> {
    const chosen = this.#refused && compression === 'zstd' ? 'gzip' : compression
    const packed = await repack(batch, chosen)
    try {
      const receipt = await send(packed)
      return packed.encoding !== batch.encoding && this.#refused ? warned(receipt) : receipt
    } catch (error) {
      if (packed.encoding !== 'zstd' || !refusesEncoding(error)) throw error
    }
    const receipt = await send(await repack(packed, 'gzip'))
    this.#refused = true
    return warned(receipt)
  }
}

/** UNIMPLEMENTED is what gRPC asks of servers here, 415 what HTTP does, and the OpenTelemetry Collector says 400. */
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
    receipt.message || 'the receiver does not accept zstd, so svc recompresses each batch; set otlp.compression to gzip'
  return { ...receipt, message }
}
