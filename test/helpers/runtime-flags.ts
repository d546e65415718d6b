// What bin/svc gives the runtime, for programs that are measured as the agent is.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const launcher = readFileSync(join(import.meta.dirname, '../../bin/svc'), 'latin1')

export const runtimeFlags: readonly string[] = launcher.match(/--[a-z-]+(?:=\d+)?(?= )/g) ?? []

/** Of the C library and of the runtime's threads. */
export const runtimeEnv: Readonly<Record<string, string>> = Object.fromEntries(
  [...launcher.matchAll(/\b([A-Z]\w+)=(\d+)/g)].map(([, name, value]) => [name!, value!]),
)
