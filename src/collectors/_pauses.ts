/** Maximum time of work without a pause, in milliseconds, so that kernel events and clients are served. */
const mostMs = 2

/**
 * For a possibly long loop of reads: a function to call after each of them. It returns a promise to await if it
 * is time for other work, otherwise undefined.
 */
export function pauses(): () => Promise<void> | undefined {
  let since = performance.now()
  return () =>
    performance.now() - since < mostMs
      ? undefined
      : new Promise(resolve => {
          setImmediate(() => {
            since = performance.now()
            resolve()
          })
        })
}
