import { readFileSync } from 'node:fs'

/** Where the kernel lists its tracepoints; libbpf also tries tracefs first. */
const roots = ['/sys/kernel/tracing', '/sys/kernel/debug/tracing'] as const

export interface TracepointField {
  readonly name: string
  /** Bytes. */
  readonly offset: number
  readonly size: number
}

/** The fields of a tracepoint's record, `syscalls/sys_enter_read`; undefined if there is no such tracepoint. */
export function tracepointFields(name: string): TracepointField[] | undefined {
  for (const root of roots) {
    try {
      return parseFormat(readFileSync(`${root}/events/${name}/format`, 'latin1'))
    } catch {
      // Not mounted here, or this kernel has no such tracepoint.
    }
  }
  return undefined
}

/** Parses a `format` file (kernel, trace/events.rst): `field:unsigned int fd;	offset:16;	size:8;	signed:0;`. */
export function parseFormat(text: string): TracepointField[] {
  const fields: TracepointField[] = []
  for (const line of text.split('\n')) {
    const [declaration, offset, size] = line.split(';')
    const from = declaration!.indexOf('field:')
    if (from < 0 || offset === undefined || size === undefined) continue
    const words = declaration!.slice(from + 6).split(/[\s*]+/)
    fields.push({
      name: words.at(-1)!.replace(/\[.*$/, ''),
      offset: numberIn(offset),
      size: numberIn(size),
    })
  }
  return fields
}

function numberIn(text: string): number {
  return Number(text.slice(text.indexOf(':') + 1))
}
