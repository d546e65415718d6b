import { overview } from './host.ts'

/** The agent's time in milliseconds since the Unix epoch, which may not be this browser's; to be asked, not followed. */
export function agentNow(): number {
  return overview.peek()?.tick?.at_ms ?? Date.now()
}
