/** The four kinds of telemetry, in the order in which documents list them. */
export const signals = ['traces', 'metrics', 'logs', 'profiles'] as const
export type Signal = (typeof signals)[number]
