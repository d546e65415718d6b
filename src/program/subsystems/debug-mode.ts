import type { Config } from '../../config/index.ts'
import { change } from '../../foundation/lib/change.ts'
import { RuntimeProfiler } from '../../foundation/runtime/runtime-profiler.ts'
import type { Subsystem } from '../agent/subsystem.ts'

/** Whether `/debug/*` is served, and its data collected. */
export function isDebugged({ self_telemetry, log_level }: Config): boolean {
  return self_telemetry.debug || log_level === 'debug'
}

export const debugMode: Subsystem<RuntimeProfiler> = {
  name: 'debug mode',
  keys: ['self_telemetry.debug', 'log_level'],
  create: ({ config }) => {
    const profiler = new RuntimeProfiler()
    if (isDebugged(config)) profiler.start()
    return profiler
  },
  close: own => own.stop(),
  prepare: (own, config) =>
    change(() => {
      if (isDebugged(config)) own.start()
      else own.stop()
    }),
}
