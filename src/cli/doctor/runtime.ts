import type { Finding } from '../../kernel/need.ts'
import { check } from './check.ts'

const launcher = {
  any: 'start with bin/svc, which brings its own runtime and its flags',
  systemd: 'ExecStart= with bin/svc of the package, and not with node',
}

export const node = check({
  name: 'Node',
  group: 'runtime',
  summary: 'The runtime is one that svc is tested with and that gets security fixes',
  lose: 'stability: nobody has tried svc on it',
  faults: {
    too_old: { state: 'missing', what: 'the runtime is older than Node 20.15', hints: launcher },
    unsupported: {
      state: 'limited',
      what: 'the runtime is a line of Node that gets no security fixes any more',
      lose: 'fixes of security holes in the runtime',
      hints: launcher,
    },
  },
  try: () => [judgeNode(process.version)],
})

/** `version` as Node says it. */
export function judgeNode(version: string): Finding<'too_old' | 'unsupported'> {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 15))
    return { fault: 'too_old', detail: `Node ${version} is older than 20.15` }
  if (major < 22) return { fault: 'unsupported', detail: `Node ${version} gets no security fixes any more` }
  return { ok: `Node ${version}` }
}

export const heap = check({
  name: 'heap bounds',
  group: 'runtime',
  summary: 'The runtime was started with the flags that keep its memory small and bounded',
  lose: 'memory: the agent takes about twice of what it needs',
  faults: {
    unbounded: {
      state: 'note',
      what: 'svc was started without the flags that bin/svc gives',
      hints: launcher,
    },
  },
  try: () => [judgeFlags(process.execArgv)],
})

/** `flags` are those that the runtime was started with. */
export function judgeFlags(flags: readonly string[]): Finding<'unbounded'> {
  const absent = ['--optimize-for-size', '--max-semi-space-size', '--max-old-space-size'].filter(
    flag => !flags.some(given => given.replaceAll('_', '-').startsWith(flag)),
  )
  return absent.length === 0
    ? { ok: 'they are set' }
    : { fault: 'unbounded', detail: `started without ${absent.join(' ')}` }
}
