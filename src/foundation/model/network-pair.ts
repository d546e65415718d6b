/** Causes of failed connection attempts, in the order of `NetworkPair.failures`, named as in `error.type`. */
export const connectFailures = [
  'connection_refused',
  'timeout',
  'host_unreachable',
  'network_unreachable',
  'connection_reset',
  'cancelled',
  'local_error',
  '_OTHER',
] as const

/** Upper bounds of connect durations, in seconds. A SYN is retransmitted after 1, 3 and 7 s. */
export const connectBounds = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 3, 10,
] as const
/** Upper bounds of round-trip times, in seconds. */
export const rttBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
] as const

/**
 * Activity of the TCP connections between one process and one address since the last read. Instances are reused: copy
 * anything that you keep.
 */
export class NetworkPair {
  /** Thread group in the initial pid namespace; 0: unknown. */
  pid = 0
  comm = ''
  /** Inode number of the network namespace: loopback addresses are local to one. */
  netns = 0
  /** The process accepted these connections. */
  server = false
  localAddress = ''
  peerAddress = ''
  /** Port of the server's end. */
  port = 0
  /** Connections that did not fit in the kernel's table: addresses, process and port are unknown. */
  overflow = false
  /** Connections that were established. */
  opened = 0
  /** Change in the number of open connections. */
  openChange = 0
  /** Bytes of payload, without retransmissions. */
  sent = 0
  received = 0
  /** Segments. */
  retransmits = 0
  resetsSent = 0
  resetsReceived = 0
  /** Sum of the durations in `connectBuckets`. */
  connectNs = 0
  /** One more than `connectBounds`. */
  readonly connectBuckets = new Float64Array(connectBounds.length + 1)
  /** Sum of the round-trip times in `rttBuckets`, in microseconds. */
  rttUs = 0
  readonly rttBuckets = new Float64Array(rttBounds.length + 1)
  /** By `connectFailures`. */
  readonly failures = new Float64Array(connectFailures.length)
}
