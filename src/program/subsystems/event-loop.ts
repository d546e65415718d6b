import { type Heartbeat, startHeartbeat } from '../../foundation/lib/heartbeat.ts'
import { sortedNames } from '../../foundation/lib/optional-files.ts'
import { type EventLoopWatch, eventLoopWatch } from '../../foundation/runtime/event-loop.ts'
import { loadNative, Unsupported } from '../../kernel/native.ts'
import { stuckMs } from '../agent/health.ts'
import { value, values } from '../agent/self-metrics.ts'
import type { Subsystem } from '../agent/subsystem.ts'

export interface EventLoop {
  readonly heartbeat: Heartbeat
  /** Undefined during the start, and without the addon. */
  watch: EventLoopWatch | undefined
}

/** Last in the list: it measures turns after the start. */
export const eventLoop: Subsystem<EventLoop> = {
  name: 'event loop',
  create: () => ({ heartbeat: startHeartbeat(stuckMs), watch: undefined }),
  start: own => {
    const native = loadNative()
    own.watch = native instanceof Unsupported ? undefined : eventLoopWatch(native)
  },
  close: ({ heartbeat }) => heartbeat.stop(),
  metrics: {
    event_loop_turn_seconds: {
      help: 'Turns of the event loop, without waits. During a turn, no other work of the agent runs.',
      histogram: ({ watch }) => watch?.histogram(),
    },
    event_loop_longest_turn_seconds: values(
      'since',
      'Longest turn of the event loop, in the last minute and since the start.',
      ({ watch }) => watch && { minute: watch.longestLastMinute, start: watch.longest },
    ),
    process_resident_memory_bytes: value('Resident memory.', () => process.memoryUsage.rss()),
    process_open_fds: value('Open file descriptors.', openDescriptors),
    go_goroutines: value(
      'Active asynchronous resources of the runtime.',
      () => process.getActiveResourcesInfo().length,
    ),
  },
}

/** Excludes the descriptor of the directory being read. NaN if /proc is not mounted. */
function openDescriptors(): number {
  const { length } = sortedNames('/proc/self/fd')
  return length === 0 ? Number.NaN : length - 1
}
