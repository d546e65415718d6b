import type { Config } from '../../config/index.ts'

/** Why something is off, and the setting that enables it. */
export interface Off {
  readonly state: 'off'
  readonly detail: string
  readonly hint: string
}

export function off(key: string, value = 'false', wanted = 'true'): Off {
  return { state: 'off', detail: `${key} is ${value}`, hint: `set ${key}: ${wanted}` }
}

/** For subsystems that observe the host. */
export function offByMode({ mode }: Config): Off | undefined {
  return mode === 'collector' ? off('mode', 'collector', 'agent') : undefined
}
