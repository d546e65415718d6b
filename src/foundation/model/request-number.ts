const moments = 2 ** 31

/**
 * Names a request to a server by the thread that received its first bytes and the time of that call in nanoseconds of
 * the monotonic clock, as the kernel side does (bpf/include/request.h, `request_number`): 53 bits, never 0. Times are
 * rounded above 104 days; one in two thousand then makes a number that nobody has.
 */
export function requestNumber(tid: number, startNs: number): number {
  return tid * moments + (Math.floor(startNs / 1024) % moments)
}

/** The same, where the kernel side tells what it made of the time; 0 of 0. */
export function requestAt(tid: number, moment: number): number {
  return moment === 0 ? 0 : tid * moments + moment
}
