/** Work that lasts longer keeps the agent from its kernel events and its clients. */
const mostMs = 2

/**
 * For a loop of reads that may be long: a function to call after each of them. It answers a promise to wait for when it
 * is time to let others run, otherwise undefined.
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
