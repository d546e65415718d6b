import type { Profile } from './profile.ts'

/** The type and unit of values or periods, as in OTLP and pprof. */
export interface ValueType {
  readonly type: string
  readonly unit: string
}

/** Sample type names that profile readers know, by kind; counts and amounts have different names. */
const sampleTypes = {
  cpu: { count: 'samples', amount: 'cpu' },
  memory: { count: 'page_faults', amount: 'alloc_space' },
  off_cpu: { count: 'off_cpu', amount: 'off_cpu' },
} as const

/** Readers name a profile by these: Pyroscope, for example, uses the period type. */
const periodTypes: Readonly<Record<Profile['kind'], ValueType | undefined>> = {
  cpu: { type: 'cpu', unit: 'nanoseconds' },
  memory: { type: 'memory', unit: 'bytes' },
  off_cpu: undefined,
}

/** The type of a profile's values. Its unit may be empty. */
export function sampleTypeOf({ kind, unit }: Profile): ValueType {
  return { type: sampleTypes[kind][unit === 'count' ? 'count' : 'amount'], unit }
}

/** The type of a profile's period; undefined if the kind has none. */
export function periodTypeOf({ kind }: Pick<Profile, 'kind'>): ValueType | undefined {
  return periodTypes[kind]
}

/** A profile's period, a whole number from 1; 0 if there is none. */
export function wholePeriod({ kind, period = 0 }: Profile): number {
  return periodTypes[kind] !== undefined && period >= 1 ? Math.round(period) : 0
}
