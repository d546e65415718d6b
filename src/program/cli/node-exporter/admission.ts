import { errorText, type Logger, limitRepeats } from '../../../foundation/lib/logger.ts'
import { plainFailure } from '../../../view/api/answer.ts'
import type { Admission } from '../../../view/api/metrics-endpoint.ts'
import type { ApiRequest } from '../../../view/api/operation.ts'
import { BasicAuth } from './basic-auth.ts'
import type { WebConfig, WebSettings } from './web-config.ts'

/** Checks of requests by a web configuration, in its order: rate limit, then user. Reads the file for each request. */
export function admission(
  config: WebConfig,
  rate: WebSettings['rate'],
  log: Logger,
): (request: ApiRequest) => Promise<Admission> {
  const limited = limitRepeats(log, 60_000)
  const allowed = rate === undefined ? () => true : bucket(rate.intervalMs, rate.burst)
  const auth = new BasicAuth()
  return async ({ headers: { authorization } }) => {
    let settings: WebSettings
    try {
      settings = config.current()
    } catch (error) {
      limited('error', 'config', 'cannot load the web configuration', { reason: errorText(error) })
      return { refusal: plainFailure(500, 'Internal Server Error') }
    }
    if (!allowed()) return { refusal: plainFailure(429, 'Too Many Requests') }
    const { headers, users } = settings
    if (users.size === 0 || (await auth.admits(authorization, users))) return { headers }
    return { refusal: plainFailure(401, 'Unauthorized', {}, { 'WWW-Authenticate': 'Basic' }), headers }
  }
}

/** Allows one more for each interval passed, and at most `burst` at once. */
function bucket(intervalMs: number, burst: number): () => boolean {
  let tokens = burst
  let last = performance.now()
  return () => {
    const now = performance.now()
    tokens = Math.min(burst, tokens + (now - last) / intervalMs)
    last = now
    if (tokens < 1) return false
    tokens--
    return true
  }
}
