import { Backoff } from '../../../../foundation/lib/backoff.ts'
import { pause } from '../../../../foundation/lib/pause.ts'

const firstRetryMs = 1_000

/**
 * Calls `ask` now and then at this interval, in milliseconds; sooner after a failure, which is a rejection. Ends with
 * `stop`; never rejects.
 */
export async function refresh(
  everyMs: number,
  stop: AbortSignal,
  ask: () => Promise<void>,
  failed: (error: unknown) => void,
): Promise<void> {
  const backoff = new Backoff({ initialMs: firstRetryMs, maxMs: everyMs, multiplier: 2, jitter: 0.5 })
  while (!stop.aborted) {
    let waitMs = everyMs
    try {
      await ask()
      backoff.reset()
    } catch (error) {
      if (stop.aborted) return
      failed(error)
      waitMs = backoff.next()
    }
    await pause(waitMs, stop)
  }
}
