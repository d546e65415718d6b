// Which kernel knows what a built object is made of, by the versions in which that came. What a kernel makes of it beyond
// that, its verifier above all, only a run tells.

import type { Native } from '../../src/kernel/native.ts'
import { instructionBytes, opcode, sectionsOf } from './bpf-elf.ts'

export interface Came {
  readonly what: string
  /** `5.12` */
  readonly since: string
}

/** Helpers by number, with when programs that trace could call them (Linux, kernel/trace/bpf_trace.c). */
const helpers: Readonly<Record<number, readonly [name: string, since: string]>> = {
  1: ['map_lookup_elem', '4.1'],
  2: ['map_update_elem', '4.1'],
  3: ['map_delete_elem', '4.1'],
  4: ['probe_read', '4.1'],
  5: ['ktime_get_ns', '4.1'],
  7: ['get_prandom_u32', '4.1'],
  12: ['tail_call', '4.2'],
  14: ['get_current_pid_tgid', '4.2'],
  15: ['get_current_uid_gid', '4.2'],
  16: ['get_current_comm', '4.2'],
  25: ['perf_event_output', '4.4'],
  35: ['get_current_task', '4.8'],
  46: ['get_socket_cookie', '5.12'],
  67: ['get_stack', '4.18'],
  80: ['get_current_cgroup_id', '4.18'],
  107: ['sk_storage_get', '5.11'],
  112: ['probe_read_user', '5.5'],
  113: ['probe_read_kernel', '5.5'],
  115: ['probe_read_kernel_str', '5.5'],
  123: ['get_current_ancestor_cgroup_id', '5.15'],
  127: ['seq_write', '5.8'],
  130: ['ringbuf_output', '5.8'],
  131: ['ringbuf_reserve', '5.8'],
  132: ['ringbuf_submit', '5.8'],
  134: ['ringbuf_query', '5.8'],
  137: ['skc_to_tcp_sock', '5.9'],
  156: ['task_storage_get', '5.13'],
  158: ['get_current_task_btf', '5.11'],
  162: ['sock_from_file', '5.11'],
  174: ['get_attach_cookie', '5.15'],
  175: ['task_pt_regs', '5.15'],
  181: ['loop', '5.17'],
  197: ['dynptr_from_mem', '5.19'],
  202: ['dynptr_write', '5.19'],
}

const maps: Readonly<Record<string, string>> = {
  array: '3.19',
  hash: '3.19',
  prog_array: '4.2',
  perf_event_array: '4.3',
  percpu_array: '4.6',
  percpu_hash: '4.6',
  lru_hash: '4.10',
  sk_storage: '5.2',
  ringbuf: '5.8',
  task_storage: '5.11',
}

/** Kinds of programs, by what their sections begin with. */
const kinds: readonly (readonly [prefix: string, since: string])[] = [
  ['perf_event', '4.9'],
  ['tracepoint', '4.7'],
  ['uprobe', '4.1'],
  ['uretprobe', '4.1'],
  ['tp_btf/sock_', '6.3'],
  ['tp_btf/', '5.5'],
  ['iter/tcp', '5.9'],
  ['iter/', '5.8'],
]

/** BPF_FETCH, BPF_XCHG and BPF_CMPXCHG have this bit. */
const fetches = 1

/** All that it is made of, the newest first. */
export function madeOf(native: Native, file: string, bytes: Uint8Array): Came[] {
  const found = new Map<string, string>()
  const object = native.objectOpen(bytes, 'made')
  try {
    for (const { type } of native.objectMaps(object)) found.set(`maps: ${type}`, sinceOf(maps[type], type))
    for (const { section } of native.objectPrograms(object))
      found.set(section, sinceOf(kinds.find(([prefix]) => section.startsWith(prefix))?.[1], section))
  } finally {
    native.objectClose(object)
  }
  for (const { bytes } of sectionsOf(file).code)
    for (let at = 0; at < bytes.length; at += instructionBytes) {
      const [code, number] = [bytes[at]!, bytes.readInt32LE(at + 4)]
      const source = bytes[at + 1]! >> 4
      if (code === opcode.call && source === 0) {
        const [name, since] = helpers[number] ?? []
        found.set(`bpf_${name}`, sinceOf(since, `helper ${number}`))
      }
      if (code === opcode.call && source === 1) found.set('functions that are verified by themselves', '5.6')
      if ((code === opcode.atomic32 || code === opcode.atomic64) && (number & fetches) !== 0)
        found.set('atomic operations with a result', '5.12')
    }
  return [...found].map(([what, since]) => ({ what, since })).sort((a, b) => order(b.since) - order(a.since))
}

/** What it takes of a kernel: the version, and what came with it. */
export function firstKernel(made: readonly Came[]): { readonly since: string; readonly because: string[] } {
  const since = made[0]!.since
  return { since, because: made.filter(each => each.since === since).map(({ what }) => what) }
}

function sinceOf(version: string | undefined, what: string): string {
  if (version === undefined)
    throw new Error(`since when are there ${what}? say it in test/helpers/bpf-needs.ts`)
  return version
}

/** `5.12` is behind `5.9`. */
export function order(version: string): number {
  const [major, minor] = version.split('.').map(Number)
  return major! * 1000 + minor!
}
