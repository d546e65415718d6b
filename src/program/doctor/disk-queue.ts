import { statfsSync } from 'node:fs'
import { signals } from '../../foundation/model/signal.ts'
import { reserveOf } from '../../pipeline/disk/disk-store.ts'
import { otlpOptions } from '../agent/otlp-options.ts'
import { check } from './check.ts'
import { nearestWritable } from './directory.ts'

const Mi = 1024 * 1024

export const diskQueue = check({
  name: 'disk queue',
  group: 'export',
  summary: 'The queue on disk is writable, and its file system has room for its maximum size',
  impact: 'queued data if svc crashes: it is in memory only',
  faults: {
    off: {
      state: 'note',
      what: 'the queue on disk is off, so queued data is lost with the process',
      hints: { config: 'pipeline.export.queue.enabled: true' },
    },
    unwritable: {
      state: 'limited',
      what: 'its directory cannot be created or written',
      hints: {
        any: 'run svc as root, or give it the directory: install -d -m 700 -o USER DIRECTORY',
        config: 'pipeline.export.queue.directory: a directory that svc may write',
        container: 'docker run -v svc-queue:/var/lib/svc',
        kubernetes: 'a hostPath volume at /var/lib/svc',
      },
    },
    small: {
      state: 'note',
      what: 'the file system has less room than the maximum size of the queue; svc leaves some of it to others',
      impact: 'the oldest queued data, counted, if a long outage fills it',
      hints: {
        config: 'pipeline.export.queue.directory on another file system, or a smaller max_size_bytes',
      },
    },
  },
  try: ({ loaded: { config } }) => {
    const { enabled, directory, max_size_bytes: most } = config.pipeline.export.queue
    // Without export there is nothing to store.
    if (!signals.some(signal => otlpOptions(config, signal) !== undefined)) return []
    if (!enabled) return [{ fault: 'off', detail: 'pipeline.export.queue.enabled is false' }]
    const found = nearestWritable(directory)
    if ('refused' in found) return [{ fault: 'unwritable', detail: found.refused }]
    const { bavail, bsize, blocks } = statfsSync(found.existing)
    const room = Math.max(0, bavail * bsize - reserveOf(blocks * bsize))
    const shown = `${directory}: room for ${Math.floor(room / Mi)} MiB`
    if (room < most)
      return [{ fault: 'small', detail: `${shown}, but its maximum size is ${Math.ceil(most / Mi)} MiB` }]
    return [{ ok: shown }]
  },
})
