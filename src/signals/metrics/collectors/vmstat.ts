import { linearRegExp } from '../../../foundation/lib/linear-regexp.ts'
import type { OtelName } from '../../../foundation/model/collector.ts'
import { regex } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { NumberLines } from './_number-lines.ts'
import { collector, type Family, untyped } from './collector.ts'
import { families } from './families.ts'

/** Fields in the semantic conventions. There is no field for minor faults: `pgfault` counts both kinds. */
const conventions: Readonly<Record<string, OtelName>> = {
  pgmajfault: {
    name: 'system.paging.faults',
    unit: '{fault}',
    kind: 'counter',
    constant: { 'system.paging.fault.type': 'major' },
  },
  pswpin: swapping('in'),
  pswpout: swapping('out'),
}

function swapping(direction: string): OtelName {
  return {
    name: 'system.paging.operations',
    unit: '{operation}',
    kind: 'counter',
    constant: { 'system.paging.direction': direction },
  }
}

function familyOf(name: string): Family {
  const otel = conventions[name]
  return untyped(`vmstat_${name}`, `The field ${name} of /proc/vmstat.`, otel === undefined ? {} : { otel })
}

/** Counters of virtual memory, from /proc/vmstat (proc(5)). */
export const vmstat = collector({
  name: 'vmstat',
  summary: 'Counters of virtual memory',
  source: '/proc/vmstat',
  enabledByDefault: true,
  metrics: [],
  dynamic: 'One metric for each field of /proc/vmstat that `fields` matches.',
  options: {
    fields: key(regex, '^(oom_kill|pgpg|pswp|pg.*fault).*', 'Regular expression for fields to show.'),
  },
  start: ({ fields }, { host }) => {
    const wanted = linearRegExp(fields)
    const lines = new NumberLines(
      '/proc/vmstat',
      families(name => (wanted.test(name) ? familyOf(name) : undefined)),
    )
    return {
      collect: readings => lines.show(host.proc.bytes('vmstat'), readings),
    }
  },
})
