import { overview } from './host.ts'

/** The agent's time in milliseconds since the Unix epoch; the browser's clock may differ. Read it, do not follow it. */
export function agentNow(): number {
  return overview.peek()?.tick?.at_ms ?? Date.now()
}
