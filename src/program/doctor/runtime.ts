import type { Finding } from '../../kernel/need.ts'
import { check } from './check.ts'

const launcher = {
  any: 'start svc with bin/svc, which includes its own runtime and flags',
  systemd: 'ExecStart= with bin/svc of the package, not with node',
}

export const node = check({
  name: 'Node',
  group: 'runtime',
  summary: 'The Node.js version is tested with svc and gets security fixes',
  impact: 'stability: svc is not tested with it',
  faults: {
    too_old: { state: 'missing', what: 'the runtime is older than Node 20.15', hints: launcher },
    unsupported: {
      state: 'limited',
      what: 'this Node release line no longer gets security fixes',
      impact: 'security fixes in the runtime',
      hints: launcher,
    },
  },
  try: () => [judgeNode(process.version)],
})

/** `version` as reported by Node. */
export function judgeNode(version: string): Finding<'too_old' | 'unsupported'> {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 15))
    return { fault: 'too_old', detail: `Node ${version} is older than 20.15` }
  if (major < 22) return { fault: 'unsupported', detail: `Node ${version} no longer gets security fixes` }
  return { ok: `Node ${version}` }
}

export const heap = check({
  name: 'heap bounds',
  group: 'runtime',
  summary: 'The runtime was started with the flags that limit its memory',
  impact: 'memory: the agent uses about twice as much',
  faults: {
    unbounded: {
      state: 'note',
      what: 'svc was started without the flags of bin/svc',
      hints: launcher,
    },
  },
  try: () => [judgeFlags(process.execArgv)],
})

/** `flags`: of the runtime's command line. */
export function judgeFlags(flags: readonly string[]): Finding<'unbounded'> {
  const absent = ['--optimize-for-size', '--max-semi-space-size', '--max-old-space-size'].filter(
    flag => !flags.some(given => given.replaceAll('_', '-').startsWith(flag)),
  )
  return absent.length === 0
    ? { ok: 'they are set' }
    : { fault: 'unbounded', detail: `started without ${absent.join(' ')}` }
}
