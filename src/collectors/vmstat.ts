import { linearRegExp } from '../lib/linear-regexp.ts'
import { Scanner } from '../lib/scanner.ts'
import { regex } from '../schema/kinds.ts'
import { key } from '../schema/tree.ts'
import { collector, untyped } from './collector.ts'
import { families } from './families.ts'

/** Counters of virtual memory, from /proc/vmstat (proc(5)). */
export const vmstat = collector({
  name: 'vmstat',
  summary: 'Counters of virtual memory',
  enabledByDefault: true,
  metrics: [],
  dynamic: 'One metric for each field of /proc/vmstat that `fields` matches.',
  options: {
    fields: key(regex, '^(oom_kill|pgpg|pswp|pg.*fault).*', 'Regular expression for fields to show.'),
  },
  start: ({ fields }, { host }) => {
    const wanted = linearRegExp(fields)
    const known = families(name =>
      wanted.test(name) ? untyped(`vmstat_${name}`, `The field ${name} of /proc/vmstat.`) : undefined,
    )
    const scan = new Scanner(Buffer.alloc(0))
    return {
      collect(readings) {
        scan.reset(host.proc.bytes('vmstat'))
        while (scan.line()) {
          const field = known(scan.text())
          if (field === undefined) continue
          const value = scan.number()
          if (Number.isNaN(value)) throw new Error('cannot read /proc/vmstat: a field has no number')
          readings.set(field, value)
        }
      },
    }
  },
})
