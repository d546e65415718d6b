/** Ways in which an attempt to connect fails, in the order of `NetworkPair.failures`; each as `error.type` names it. */
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

/** Upper bounds of the durations of connecting, in seconds. A SYN is repeated after 1, 3 and 7 s. */
export const connectBounds = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 3, 10,
] as const
/** Upper bounds of round-trip times, in seconds. */
export const rttBounds = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
] as const

/**
 * What the TCP connections between one process and one address did since the last look. An instance is filled again
 * and again: whoever keeps something of it copies it.
 */
export class NetworkPair {
  /** Thread group in the kernel's first namespace; 0: nobody knows. */
  pid = 0
  comm = ''
  /** Inode number of the network namespace: loopback addresses are of one namespace only. */
  netns = 0
  /** The process accepted these connections. */
  server = false
  localAddress = ''
  peerAddress = ''
  /** Of the server's end. */
  port = 0
  /** What no longer fitted in the kernel's table: the addresses, the process and the port are not known. */
  overflow = false
  /** Connections that were established. */
  opened = 0
  /** By how many the connections that are established now are more, or less. */
  openChange = 0
  /** Bytes of payload, retransmissions left out. */
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
