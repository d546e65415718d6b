import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { optionalNumberAt } from './_small-file.ts'
import { collector, counter, type Family, gauge, NoData } from './collector.ts'

const labels = ['device']
const perNanosecond = 0.000000001

/** Families by file in /sys/class/scsi_tape/<device>/stats (Documentation/scsi/st.rst). */
const files: readonly (readonly [file: string, family: Family, factor: number])[] = [
  ['in_flight', gauge('tape_io_now', 'Requests that the drive is working on.', { labels }), 1],
  [
    'io_ns',
    counter(
      'tape_io_time_seconds_total',
      'Time that all requests took together, those that move the tape included.',
      { labels },
    ),
    perNanosecond,
  ],
  [
    'other_cnt',
    counter('tape_io_others_total', 'Requests that were neither reads nor writes.', { labels }),
    1,
  ],
  ['read_byte_cnt', counter('tape_read_bytes_total', 'Bytes read.', { labels }), 1],
  ['read_cnt', counter('tape_reads_completed_total', 'Reads.', { labels }), 1],
  [
    'read_ns',
    counter('tape_read_time_seconds_total', 'Time that all reads took together.', { labels }),
    perNanosecond,
  ],
  [
    'resid_cnt',
    counter('tape_residual_total', 'Reads and writes that transferred less than was asked for.', { labels }),
    1,
  ],
  ['write_byte_cnt', counter('tape_written_bytes_total', 'Bytes written.', { labels }), 1],
  ['write_cnt', counter('tape_writes_completed_total', 'Writes.', { labels }), 1],
  [
    'write_ns',
    counter('tape_write_time_seconds_total', 'Time that all writes took together.', { labels }),
    perNanosecond,
  ],
]

/** Tape drives. A drive has further names for other modes (nst0, st0a), which are the same drive. */
export const tapestats = collector({
  name: 'tapestats',
  summary: 'Tape drives',
  source: '/sys/class/scsi_tape',
  enabledByDefault: true,
  metrics: files.map(([, family]) => family),
  options: { ignored_devices: key(regex, '^$', 'Regular expression for devices to exclude.') },
  start: ({ ignored_devices }, { host: { sys } }) => {
    const ignored = linearRegExp(ignored_devices)
    return {
      collect(readings) {
        if (!sys.exists('class/scsi_tape')) throw new NoData('/sys/class/scsi_tape not found: no tape drive')
        for (const device of sys.list('class/scsi_tape')) {
          if (!/^st\d+$/.test(device) || ignored.test(device)) continue
          for (const [file, family, factor] of files) {
            const value = optionalNumberAt(sys, `class/scsi_tape/${device}/stats/${file}`)
            if (value !== undefined) readings.set(family, value * factor, device)
          }
        }
      },
    }
  },
})
