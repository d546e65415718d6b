/**
 * Small buffers are slices of a pool that lives as long as any of them: 64 KiB since Node.js 24, so that a table that
 * keeps a few of many buffers (heads of files, keys) retained fifty times the memory that it counts. Call once in each
 * thread.
 */
export function smallPool(): void {
  Buffer.poolSize = 8 * 1024
}
