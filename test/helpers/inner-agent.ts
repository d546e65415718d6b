import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoadedConfig, loadConfig } from '../../src/config/index.ts'
import { LogRing } from '../../src/foundation/lib/log-ring.ts'
import { createLogger } from '../../src/foundation/lib/logger.ts'
import { startAgent } from '../../src/program/agent.ts'
import type { RunningAgent } from '../../src/view/api/types.ts'

export interface InnerAgent {
  readonly agent: RunningAgent
  readonly loaded: LoadedConfig
  /** Lines of its log, from `info` on. */
  readonly logged: readonly string[]
}

/**
 * Starts an agent in this process, by variables alone: no file of the host counts or is written, and nothing is queued on
 * disk.
 */
export async function startInnerAgent(env: Readonly<Record<string, string>>): Promise<InnerAgent> {
  const state = mkdtempSync(join(tmpdir(), 'svc-inner-'))
  const loaded = loadConfig({
    explicit: false,
    cwd: '/nonexistent',
    systemFile: '/nonexistent',
    // The heap of the tests' process counts as the agent's.
    env: {
      SVC_LIMITS_MEMORY: '8Gi',
      SVC_PIPELINE_EXPORT_QUEUE_ENABLED: 'false',
      // The note of the run stands beside it.
      SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: join(state, 'queue'),
      SVC_SELF_TELEMETRY_ADMIN_SOCKET: '',
      ...env,
    },
  })
  assert.deepEqual(loaded.problems, [])
  const logged: string[] = []
  const log = createLogger({ level: 'info', format: 'json', write: line => logged.push(line) })
  const agent = await startAgent({ loaded, log, logRing: new LogRing(), load: () => loaded })
  const { stop } = agent
  let ended: Promise<void> | undefined
  const stopClean = () => {
    ended ??= stop().finally(() => rmSync(state, { recursive: true, force: true }))
    return ended
  }
  Object.defineProperty(agent, 'stop', { value: stopClean })
  return { agent, loaded, logged }
}
