const moments = 2 ** 31

/**
 * Identifies a request to a server by the thread that received its first bytes and the time of that call in nanoseconds
 * of the monotonic clock, as the kernel side does (bpf/include/request.h, `request_number`): 53 bits, never 0. Above
 * 104 days of uptime doubles round the time, so that one number in two thousand matches no request.
 */
export function requestNumber(tid: number, startNs: number): number {
  return tid * moments + (Math.floor(startNs / 1024) % moments)
}

/** The same from a time that the kernel side already reduced; 0 for 0. */
export function requestAt(tid: number, moment: number): number {
  return moment === 0 ? 0 : tid * moments + moment
}
