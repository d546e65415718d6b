import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, counter, gauge, type Host, NoData, type Tree } from './collector.ts'

const cpuSeconds = counter(
  'cgroup_cpu_usage_seconds_total',
  'CPU time that the processes of a control group used.',
  {
    labels: ['cgroup'],
  },
)
const memoryBytes = gauge('cgroup_memory_usage_bytes', 'Memory that the processes of a control group use.', {
  labels: ['cgroup'],
})

/** Maximum number of groups shown, in order of their names. */
const mostGroups = 500
/** Validity of the list of groups, in milliseconds. */
const listMs = 10_000
const mostDepth = 16

/** CPU and memory of leaf control groups, version 1 and 2 (cgroups(7)). Not in the replaced exporter. */
export const cgroup_usage = collector({
  name: 'cgroup_usage',
  summary: 'CPU time and memory of leaf control groups',
  source: '/sys/fs/cgroup',
  enabledByDefault: true,
  metrics: [cpuSeconds, memoryBytes],
  start: (_options, { host }) => {
    let listedAt = Number.NEGATIVE_INFINITY
    let accounts: readonly Account[] = []
    const scan = new Scanner(Buffer.alloc(0))
    return {
      collect(readings) {
        const now = performance.now()
        if (now - listedAt >= listMs) {
          listedAt = now
          accounts = accountsOf(host)
        }
        if (accounts.length === 0)
          throw new NoData('no control groups with CPU or memory accounting are mounted')
        for (const { tree, groups, cpu, memory } of accounts)
          for (const { name, directory } of groups) {
            const seconds = cpu === undefined ? undefined : cpuOf(tree, `${directory}/${cpu}`, scan)
            if (seconds !== undefined) readings.set(cpuSeconds, seconds, name)
            const bytes = memory === undefined ? undefined : tree.number(`${directory}/${memory}`)
            if (bytes !== undefined) readings.set(memoryBytes, bytes, name)
          }
      },
    }
  },
})

/** A hierarchy of control groups, and its files to read. */
interface Account {
  readonly tree: Tree
  readonly groups: readonly Group[]
  readonly cpu: string | undefined
  readonly memory: string | undefined
}

interface Group {
  /** Path below the hierarchy's root: `/system.slice/ssh.service`. */
  readonly name: string
  /** Path below the tree's root. */
  readonly directory: string
}

/** Hierarchies with CPU and memory accounting: version 2 if it has the controllers, otherwise version 1. */
function accountsOf(host: Host): readonly Account[] {
  const mounts = cgroupMounts(host)
  const found: Account[] = []
  let missing = new Set(['cpu', 'memory'])
  const unified = mounts.find(({ version }) => version === 2)
  if (unified) {
    const { tree, directory } = unified
    const controllers = new Set((tree.find(`${directory}/cgroup.controllers`) ?? '').split(' '))
    // CPU time is accounted in every group (cpu.stat), even without the controller.
    const cpu = controllers.has('cpu') || !mounts.some(({ controllers }) => controllers.has('cpuacct'))
    const memory = controllers.has('memory')
    if (cpu || memory) {
      found.push({
        tree,
        groups: leaves(tree, directory),
        cpu: cpu ? 'cpu.stat' : undefined,
        memory: memory ? 'memory.current' : undefined,
      })
      missing = new Set([...(cpu ? [] : ['cpu']), ...(memory ? [] : ['memory'])])
    }
  }
  for (const { version, controllers, tree, directory } of mounts) {
    if (version !== 1) continue
    const cpu = missing.has('cpu') && controllers.has('cpuacct')
    const memory = missing.has('memory') && controllers.has('memory')
    if (!cpu && !memory) continue
    if (cpu) missing.delete('cpu')
    if (memory) missing.delete('memory')
    found.push({
      tree,
      groups: leaves(tree, directory),
      cpu: cpu ? 'cpuacct.usage' : undefined,
      memory: memory ? 'memory.usage_in_bytes' : undefined,
    })
  }
  return found
}

interface Mount {
  readonly version: 1 | 2
  readonly tree: Tree
  /** Path below the tree's root. */
  readonly directory: string
  /** Controllers of version 1. */
  readonly controllers: ReadonlySet<string>
}

/** Mounted hierarchies, from /proc/1/mounts or, if that is unreadable, /proc/self/mounts (fstab(5)). */
function cgroupMounts({ proc, root, sys }: Host): readonly Mount[] {
  const text = proc.find('1/mounts') ?? proc.find('self/mounts') ?? ''
  const found: Mount[] = []
  for (const line of text.split('\n')) {
    const [, at = '', type, options = ''] = line.split(' ')
    if (type !== 'cgroup' && type !== 'cgroup2') continue
    const path = at
      .replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))
      .replace(/^\/+/, '')
    // Files below /sys that are read repeatedly stay open, which costs a fifth.
    const inSys = path.startsWith('sys/') && root.at('sys') === sys.root
    found.push({
      version: type === 'cgroup2' ? 2 : 1,
      tree: inSys ? sys : root,
      directory: inSys ? path.slice(4) : path,
      controllers: new Set(options.split(',')),
    })
  }
  return found
}

/** Groups without child groups, in order of their names. */
function leaves(tree: Tree, top: string): readonly Group[] {
  const found: Group[] = []
  const walk = (name: string, depth: number): boolean => {
    let isLeaf = true
    for (const child of tree.directories(`${top}${name}`)) {
      if (found.length >= mostGroups) return false
      isLeaf = false
      if (depth < mostDepth) walk(`${name}/${child}`, depth + 1)
    }
    if (isLeaf && found.length < mostGroups)
      found.push({ name: name === '' ? '/' : name, directory: `${top}${name}` })
    return isLeaf
  }
  walk('', 0)
  return found
}

/** Seconds, from `usage_usec` of a cpu.stat (version 2) or the nanoseconds of a cpuacct.usage. */
function cpuOf(tree: Tree, path: string, scan: Scanner): number | undefined {
  if (!path.endsWith('/cpu.stat')) {
    const nanoseconds = tree.number(path)
    return nanoseconds === undefined ? undefined : nanoseconds / 1e9
  }
  if (!tree.exists(path)) return undefined
  scan.reset(tree.bytes(path))
  while (scan.line()) {
    if (!scan.starts('usage_usec ')) continue
    scan.skip()
    const microseconds = scan.number()
    if (Number.isNaN(microseconds)) throw new Error(`cannot read ${tree.at(path)}: usage_usec has no number`)
    return microseconds / 1e6
  }
  return undefined
}
