// What the kernel side of tracing needs of the configuration.

import type { Config } from '../../config/index.ts'
import type { MemoryGovernor } from '../../foundation/lib/memory-governor.ts'
import type { CaptureOptions, CaptureRules } from '../../signals/capture/capture.ts'
import { kernelBounds } from '../../signals/traces/protocols/durations.ts'

/** Memory for records waiting to be read, besides the ring: both sides of 10,000 requests with long heads, */
const backlogBytes = 24 * 2 ** 20
/** and at most this share of table memory, which does not include it. */
const backlogShare = 2 / 3

/** Options of the kernel side. */
export function captureOptions(
  config: Config,
  protocols: readonly string[] = [],
  governor?: MemoryGovernor,
): CaptureOptions {
  const { ringbuf_size, perf_buffer_size, network } = config.agent.ebpf
  return {
    ...captureRules(network),
    ringBytes: ringbuf_size,
    perfBytes: perf_buffer_size,
    backlogBytes: Math.min(backlogBytes, governor?.limitOf(backlogShare) ?? backlogBytes),
    captureBytes: network.capture_bytes,
    protocols,
    boundsNs: kernelBounds.map(bound => Math.round(bound * 1e9)),
  }
}

export function captureRules({
  include_ports,
  exclude_ports,
  sampling,
}: Config['agent']['ebpf']['network']): CaptureRules {
  return {
    includePorts: include_ports,
    excludePorts: exclude_ports,
    maxPerSecond: sampling.max_spans_per_second,
    alwaysErrors: sampling.always_errors,
    alwaysSlow: sampling.always_slow,
    slowNs: sampling.slow_threshold * 1e6,
  }
}
