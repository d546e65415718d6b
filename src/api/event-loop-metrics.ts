import { Histogram, type Registry } from '../lib/registry.ts'

/** How long the turns of the event loop take, in seconds. */
export interface EventLoopStats {
  readonly longest: number
  readonly longestLastMinute: number
  histogram(): Histogram
}

export function eventLoopMetrics(
  registry: Registry,
  named: (name: string) => string,
  loop: () => EventLoopStats | undefined,
): void {
  const none = new Histogram([])
  registry.observed(
    named('event_loop_turn_seconds'),
    'Turns of the event loop, without waits. During a turn, no other work of the agent runs.',
    () => loop()?.histogram() ?? none,
  )
  registry.collector(
    named('event_loop_longest_turn_seconds'),
    'Longest turn of the event loop, in the last minute and since the start.',
    'gauge',
    ['since'],
    emit => {
      const now = loop()
      if (now === undefined) return
      emit(now.longestLastMinute, 'minute')
      emit(now.longest, 'start')
    },
  )
}
