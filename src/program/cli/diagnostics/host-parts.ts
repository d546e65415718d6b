import { closeSync, existsSync, openSync, readlinkSync, readSync } from 'node:fs'
import { cpus, freemem, loadavg, machine, release, totalmem, uptime, version } from 'node:os'
import { errorText } from '../../../foundation/lib/logger.ts'
import { sortedNames } from '../../../foundation/lib/optional-files.ts'
import { portHolder } from '../../../foundation/lib/port-holder.ts'
import { installOf } from '../../../kernel/install.ts'
import type { Part } from './part.ts'

const Ki = 1024

/** Processes of svc to describe. More than one on a host is a mistake; two suffice to show it. */
const mostProcesses = 4

const sysctls = [
  'kernel/unprivileged_bpf_disabled',
  'kernel/perf_event_paranoid',
  'kernel/perf_event_max_sample_rate',
  'kernel/perf_event_mlock_kb',
  'kernel/kptr_restrict',
  'kernel/dmesg_restrict',
  'kernel/yama/ptrace_scope',
  'kernel/bpf_stats_enabled',
  'kernel/cap_last_cap',
  'kernel/pid_max',
  'kernel/threads-max',
  'kernel/tainted',
  'net/core/bpf_jit_enable',
  'net/core/bpf_jit_harden',
  'net/core/bpf_jit_limit',
  'net/core/somaxconn',
  'net/ipv4/ip_local_port_range',
  'net/ipv6/bindv6only',
  'user/max_user_namespaces',
  'vm/overcommit_memory',
  'vm/swappiness',
  'fs/file-nr',
  'fs/nr_open',
]

const filesystems = new Set(['bpf', 'cgroup', 'cgroup2', 'debugfs', 'proc', 'securityfs', 'sysfs', 'tracefs'])

/** The kernel, the host, and each process of svc. `port`: where the agent listens, to identify its process. */
export function hostParts(port: number | undefined): Part[] {
  return [
    {
      name: 'host/kernel.txt',
      what: 'The kernel: version, command line, settings and mounts relevant to eBPF',
      source: '/proc, /sys',
      form: 'text',
      mostBytes: 128 * Ki,
      collect: async most => bounded(kernelText(), most),
    },
    {
      name: 'host/system.txt',
      what: 'The host: distribution, load, memory, signs of a container, variable names',
      source: '/proc, /etc/os-release',
      form: 'text',
      mostBytes: 64 * Ki,
      collect: async most => bounded(systemText(), most),
    },
    ...processParts(port),
  ]
}

function processParts(port: number | undefined): Part[] {
  const part = (pid: string): Part => ({
    name: `host/process-${pid}.txt`,
    what: 'An svc process: state, capabilities, limits, memory, descriptors, variable names',
    source: pid === 'svc' ? '/proc' : `/proc/${pid}`,
    form: 'text',
    mostBytes: 64 * Ki,
    collect: async most => {
      if (pid === 'svc') throw new Error('this user sees no process named svc')
      return bounded(processText(pid), most)
    },
  })
  const pids = agentPids(port)
  return pids.length > 0 ? pids.map(part) : [part('svc')]
}

/** The listening process, if it is svc; otherwise all with the agent's name. */
function agentPids(port: number | undefined): string[] {
  const holder = port === undefined ? undefined : portHolder(port)
  if (holder?.name === 'svc') return [String(holder.pid)]
  return sortedNames('/proc')
    .filter(pid => /^\d+$/.test(pid) && pid !== String(process.pid))
    .filter(pid => read(`/proc/${pid}/comm`).trim() === 'svc')
    .slice(0, mostProcesses)
}

function kernelText(): string {
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .filter(line => filesystems.has(/ - (\S+)/.exec(line)?.[1] ?? ''))
  return sections([
    ['uname', `Linux ${release()} ${machine()}\n${version()}`],
    ['/proc/version', read('/proc/version')],
    ['/proc/cmdline, with values that may be secrets left out', maskedWords(read('/proc/cmdline'))],
    ['/sys/kernel/security/lockdown', read('/sys/kernel/security/lockdown')],
    ['/sys/kernel/security/lsm', read('/sys/kernel/security/lsm')],
    ['/proc/sys', sysctls.map(name => `${name} = ${read(`/proc/sys/${name}`).trim()}`).join('\n')],
    ['/sys/kernel/btf', sortedNames('/sys/kernel/btf').slice(0, 500).join(' ') || '(none)'],
    ['mounts of kernel file systems', mounts.join('\n')],
    ['tracefs', sortedNames('/sys/kernel/tracing').slice(0, 5).join(' ') || '(cannot be listed)'],
  ])
}

function systemText(): string {
  const marks = ['/.dockerenv', '/run/.containerenv', '/run/systemd/system', '/var/run/secrets/kubernetes.io']
  return sections([
    ['/etc/os-release', read('/etc/os-release')],
    ['installation', installOf()],
    ['marks', marks.map(path => `${path}: ${existsSync(path) ? 'there' : 'not found'}`).join('\n')],
    ['CPUs', `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`],
    ['load and uptime', `${loadavg().join(' ')}\n${Math.round(uptime())} s`],
    ['memory, bytes', `total ${totalmem()}\nfree ${freemem()}`],
    ['/proc/meminfo', read('/proc/meminfo')],
    ...['cpu', 'memory', 'io'].map(
      what => [`/proc/pressure/${what}`, read(`/proc/pressure/${what}`)] as const,
    ),
    ['this process', `uid ${process.getuid?.()}, ${process.version}\n${read('/proc/self/cgroup')}`],
    ['variable names', ownNames(Object.keys(process.env))],
  ])
}

function processText(pid: string): string {
  const at = (name: string) => `/proc/${pid}/${name}`
  const file = (name: string) => [at(name), read(at(name))] as const
  const threads = sortedNames(at('task')).slice(0, 200)
  return sections([
    ['executable', link(at('exe'))],
    ['command line', maskedWords(read(at('cmdline')).replaceAll('\0', ' '))],
    file('status'),
    file('limits'),
    file('smaps_rollup'),
    file('io'),
    file('cgroup'),
    file('oom_score_adj'),
    ['user namespace, and the one of this process', `${link(at('ns/user'))} ${link('/proc/self/ns/user')}`],
    ['pid namespace, and the one of this process', `${link(at('ns/pid'))} ${link('/proc/self/ns/pid')}`],
    ['threads', threads.map(thread => read(at(`task/${thread}/comm`)).trim()).join('\n')],
    ['descriptors', String(sortedNames(at('fd')).length)],
    ['variable names', namesOf(read(at('environ')))],
  ])
}

/** Variable names in the text of /proc/PID/environ, or why it cannot be read. */
function namesOf(environ: string): string {
  return environ.startsWith('(') ? environ : ownNames(environ.split('\0'))
}

/** Names, never values, of the variables of svc. */
function ownNames(variables: readonly string[]): string {
  const names = variables.map(variable => variable.split('=', 1)[0]!)
  const own = names.filter(name =>
    /^(?:SVC|OTEL|KUBERNETES_SERVICE|NODE)_|^(?:container|INVOCATION_ID)$/.test(name),
  )
  return own.sort().join('\n') || '(none of svc or OpenTelemetry)'
}

const secretName = /key|pass|secret|token|cred|auth|luks|seed/i

/** The words of a command line, without the values of names that suggest a secret: `name=value` or `--name value`. */
function maskedWords(text: string): string {
  let follows = false
  return text
    .trim()
    .split(/\s+/)
    .map(word => {
      const [name, value] = word.split('=', 2) as [string, string | undefined]
      const isSecret = secretName.test(name)
      const hidden = follows && !word.startsWith('-')
      follows = isSecret && value === undefined && word.startsWith('-')
      if (hidden) return '[REDACTED]'
      return isSecret && value ? `${name}=[REDACTED]` : word
    })
    .join(' ')
}

function sections(parts: readonly (readonly [title: string, text: string])[]): string {
  return parts.map(([title, text]) => `=== ${title}\n${text.trimEnd() || '(empty)'}\n`).join('\n')
}

function bounded(text: string, most: number) {
  const body = Buffer.from(text)
  return { body: body.subarray(0, most), cut: body.length > most }
}

/** The beginning of a file, or why it cannot be read. */
function read(path: string, most = 64 * Ki): string {
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = Buffer.alloc(most)
      let size = 0
      for (let got = -1; got !== 0 && size < most; size += got)
        got = readSync(file, bytes, size, most - size, null)
      return bytes.toString('utf8', 0, size)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    return `(${errorText(error)})`
  }
}

function link(path: string): string {
  try {
    return readlinkSync(path)
  } catch (error) {
    return `(${errorText(error)})`
  }
}
