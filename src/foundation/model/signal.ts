/** The four kinds of telemetry, in the order in which documents list them. */
export const signals = ['traces', 'metrics', 'logs', 'profiles'] as const
export type Signal = (typeof signals)[number]

export function bySignal<V>(of: (signal: Signal) => V): Record<Signal, V> {
  return { traces: of('traces'), metrics: of('metrics'), logs: of('logs'), profiles: of('profiles') }
}
