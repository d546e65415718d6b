// The reference page of everything that svc attaches to the kernel, from the sources of the programs.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { capital, code, table } from './markdown.ts'

const root = join(import.meta.dirname, '..')

interface Purpose {
  readonly for: string
  /** When it is loaded. */
  readonly when: string
}

/** By object. */
const purposes: Readonly<Record<string, Purpose>> = {
  sock: {
    for: 'Requests and responses, at the end of each socket call; inside TLS, at functions of TLS libraries',
    when: '`agent.ebpf.network.enabled`, with the back end `sock`; TLS library functions with `agent.ebpf.network.tls`',
  },
  syscalls: {
    for: 'The same on kernels before 6.3, at system calls',
    when: '`agent.ebpf.network.enabled`, with the back end `syscalls`',
  },
  'syscalls-tls': {
    for: 'Inside TLS on kernels before 6.3, at functions of TLS libraries and at system calls of threads that use them',
    when: '`agent.ebpf.network.tls`, with the back end `syscalls`',
  },
  net: {
    for: 'Connections: bytes, round trips, retransmissions, resets, by process and peer',
    when: '`agent.ebpf.network.tcp_metrics` or `agent.ebpf.network.flows`',
  },
  process: {
    for: 'Process starts, ends and out-of-memory kills',
    when: '`agent.ebpf.process.enabled`',
  },
  profile: {
    for: 'Stacks of all processes, at the rate `agent.profiling.sample_rate`',
    when: '`agent.profiling.enabled`; `sched_switch` with `off_cpu`, page faults with `memory`',
  },
  syscount: {
    for: 'Counts and durations of system calls by process',
    when: '`agent.ebpf.syscalls.enabled`',
  },
  host: {
    for: 'Host metrics that are not in /proc: round-trip times, retransmissions, open files of processes',
    when: '`agent.nodeexporter.ebpf_enhanced`',
  },
}

const kinds: readonly (readonly [prefix: string, what: string])[] = [
  ['tp_btf/', 'tracepoint'],
  ['tracepoint/', 'tracepoint'],
  ['tracepoint', 'part of a tracepoint’s program'],
  ['iter/', 'iterator, runs when svc reads it'],
  ['perf_event', 'perf event'],
  ['uprobe', 'entry of a function of a TLS library'],
  ['uretprobe', 'return of a function of a TLS library'],
]

export interface Attachment {
  readonly program: string
  /** The section in libbpf's syntax: `tp_btf/sched_switch`. */
  readonly section: string
}

/** All programs of each object, by the object's name. */
export function attachments(): ReadonlyMap<string, readonly Attachment[]> {
  const objects = readdirSync(join(root, 'bpf'))
    .filter(file => file.endsWith('.bpf.c'))
    .sort()
  return new Map(objects.map(file => [file.slice(0, -'.bpf.c'.length), programsOf(join('bpf', file))]))
}

function programsOf(file: string): readonly Attachment[] {
  const text = sources(file, new Set())
    .map(each => readFileSync(join(root, each), 'utf8'))
    .join('\n')
  const plain = text.matchAll(/^SEC\("([^".?]+)"\)\nint (?:BPF_PROG\()?(\w+)/gm)
  const found = [...plain].map(([, section, program]) => ({ section: section!, program: program! }))
  // A macro writes two programs for each system call of one form.
  for (const [, way, call] of text.matchAll(/^ON_(ENTER|EXIT)(?:_TWICE)?\((\w+)/gm)) {
    const side = way!.toLowerCase()
    for (const name of ['', 'again_'])
      found.push({
        section: `tracepoint/syscalls/sys_${side}_${call}`,
        program: `svc_${name}${side}_${call}`,
      })
  }
  return found.sort((a, b) => a.section.localeCompare(b.section) || a.program.localeCompare(b.program))
}

/** A file and its includes from this tree. */
function sources(file: string, seen: Set<string>): string[] {
  if (seen.has(file)) return []
  seen.add(file)
  let text: string
  try {
    text = readFileSync(join(root, file), 'utf8')
  } catch {
    return [] // written by the build: has no programs
  }
  const included = [...text.matchAll(/^#include "([^"]+)"/gm)]
  return [...included.flatMap(([, target]) => sources(join(dirname(file), target!), seen)), file]
}

/** The page, in Markdown. */
export function attachmentsPage(): string {
  const all = [...attachments()].map(([object, programs]) => section(object, programs))
  return `${[intro, ...all].join('\n\n')}\n`
}

const intro = `# Attachments

Generated from the sources in \`bpf\` by \`tools/gen-docs.ts\`; do not edit.

All eBPF programs of svc and their attachments. They only read: none writes into a process, sends a signal, changes
a packet or a return value. Current attachments: \`GET /status/ebpf\`, the page Agent at \`/ui\`, and
\`bpftool prog\`. Programs with \`again\` in their names are attached only on Linux 7 and newer
([why](../develop/capture.md)). All are removed when svc ends, for whatever reason. Other effects on the host: [security](../security.md).`

function section(object: string, programs: readonly Attachment[]): string {
  const purpose = purposes[object]
  if (purpose === undefined)
    throw new Error(`${object}.bpf.o has no description: add one in tools/attachments-page.ts`)
  const rows = programs.map(({ section, program }) => [code(section), kindOf(section), code(program)])
  return `## ${object}.bpf.o\n\n${capital(purpose.for)}. Loaded with ${purpose.when}.\n\n${table(['hook', 'kind', 'program'], rows)}`
}

function kindOf(section: string): string {
  const kind = kinds.find(([prefix]) => section.startsWith(prefix))
  if (kind === undefined)
    throw new Error(`no description of ${section}: add one in tools/attachments-page.ts`)
  return kind[1]
}
