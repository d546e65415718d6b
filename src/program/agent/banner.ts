// The banner of a started agent: a line per subsystem, and its faults.

import { type LoadedConfig, notBuiltFeatures } from '../../config/index.ts'
import type { BannerLine } from '../../view/api/types.ts'
import type { SubsystemState } from './subsystem.ts'

export function banner(states: readonly SubsystemState[], { config, origins }: LoadedConfig): BannerLine[] {
  const missing = notBuiltFeatures(config, origins).filter(({ explicit }) => explicit)
  return [
    ...states.flatMap(linesOf),
    ...missing.map(
      ({ key }): BannerLine => ({ state: 'limited', name: 'not built', detail: `${key} is set` }),
    ),
  ]
}

function linesOf({ subsystem: { name, banner }, state: of }: SubsystemState): BannerLine[] {
  const { state, detail, hint, faults = [] } = of
  const lines = faults.map(
    (fault): BannerLine => ({
      state: state === 'failed' || fault.fails !== undefined ? 'failed' : 'limited',
      name: fault.subsystem,
      detail: fault.reason,
      hint: fault.hint,
    }),
  )
  const isShown = banner === 'always' || (banner === 'working' && state === 'ok')
  if (!isShown || state === 'failed' || detail === undefined) return lines
  // How to enable a subsystem is in the documentation.
  const hinted = state === 'none' && hint !== undefined ? { hint } : {}
  return [{ state, name, detail, ...hinted }, ...lines]
}
