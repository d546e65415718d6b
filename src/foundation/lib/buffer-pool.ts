/**
 * Small buffers are cut from a piece of memory that lives as long as any of them: 64 KiB of it since Node.js 24, so that a
 * table that keeps a few of many that come (heads of files, keys) held fifty times what it counts. To be called once by each
 * thread.
 */
export function smallPool(): void {
  Buffer.poolSize = 8 * 1024
}
