import type { Profile } from './profile.ts'

/** What values or periods of a profile are, as OTLP and pprof have it. */
export interface ValueType {
  readonly type: string
  readonly unit: string
}

/** Names of sample types that readers of profiles know, by kind; those of counts differ from those of amounts. */
const sampleTypes = {
  cpu: { count: 'samples', amount: 'cpu' },
  memory: { count: 'page_faults', amount: 'alloc_space' },
  off_cpu: { count: 'off_cpu', amount: 'off_cpu' },
} as const

/** Readers take the name of a profile from these: Pyroscope, for example, calls one by its period type. */
const periodTypes: Readonly<Record<Profile['kind'], ValueType | undefined>> = {
  cpu: { type: 'cpu', unit: 'nanoseconds' },
  memory: { type: 'memory', unit: 'bytes' },
  off_cpu: undefined,
}

/** The type of a profile's values. Its unit may be empty. */
export function sampleTypeOf({ kind, unit }: Profile): ValueType {
  return { type: sampleTypes[kind][unit === 'count' ? 'count' : 'amount'], unit }
}

/** The type of a profile's period; undefined where the kind has none. */
export function periodTypeOf({ kind }: Pick<Profile, 'kind'>): ValueType | undefined {
  return periodTypes[kind]
}

/** A profile's period, a whole number from 1; 0 where there is none to tell. */
export function wholePeriod({ kind, period = 0 }: Profile): number {
  return periodTypes[kind] !== undefined && period >= 1 ? Math.round(period) : 0
}
