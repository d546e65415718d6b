// A control group that bounds the CPU time and memory of what runs in it, in either version of cgroups.

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pause, until } from './program.ts'

interface Mounts {
  readonly version: 1 | 2
  readonly cpu: string
  readonly memory: string
}

const mounts = found()

export const withoutResourceGroup: string | false =
  mounts === undefined
    ? 'bounds take control groups with the controllers cpu and memory, which cannot be made here'
    : false

export interface Bounds {
  /** Of one core: 0.2 is what Kubernetes calls 200m. Left out: without a bound. */
  readonly cpus?: number
  readonly memoryBytes: number
  /** What systemd calls CPUWeight=, against 100 of others. */
  readonly cpuWeight?: number
  /** The group that it is a part of, in which nothing else runs. */
  readonly within?: ResourceGroup
}

/** What ran in a group took. */
export interface Usage {
  /** At its highest, page cache included. */
  readonly peakBytes: number
  /** Times in which the kernel ended a process for want of memory. */
  readonly kills: number
}

export class ResourceGroup {
  readonly #mounts: Mounts
  readonly #cpu: string
  readonly #memory: string

  constructor({ cpus, memoryBytes, cpuWeight = 100, within }: Bounds) {
    if (mounts === undefined) throw new Error('there are no control groups')
    this.#mounts = mounts
    const name = `svc-test-${process.pid}-${process.hrtime.bigint()}`
    this.#cpu = join(within === undefined ? mounts.cpu : within.#cpu, name)
    this.#memory = join(within === undefined ? mounts.memory : within.#memory, name)
    if (within !== undefined && mounts.version === 2)
      this.#write(within.#cpu, 'cgroup.subtree_control', '+cpu +memory')
    for (const directory of new Set([this.#cpu, this.#memory])) mkdirSync(directory)
    const periodUs = 100_000
    const quotaUs = cpus === undefined ? undefined : Math.round(cpus * periodUs)
    if (mounts.version === 2) {
      this.#write(this.#cpu, 'cpu.weight', cpuWeight)
      this.#write(this.#cpu, 'cpu.max', `${quotaUs ?? 'max'} ${periodUs}`)
      this.#write(this.#memory, 'memory.max', memoryBytes)
      this.#write(this.#memory, 'memory.swap.max', 0)
    } else {
      this.#write(this.#cpu, 'cpu.shares', Math.round(10.24 * cpuWeight))
      this.#write(this.#cpu, 'cpu.cfs_period_us', periodUs)
      this.#write(this.#cpu, 'cpu.cfs_quota_us', quotaUs ?? -1)
      this.#write(this.#memory, 'memory.limit_in_bytes', memoryBytes)
    }
  }

  /** What a command is passed to, to run in the group. */
  get wrapper(): readonly string[] {
    const joins = [...new Set([this.#cpu, this.#memory])].map(at => `echo $$ >"${at}/cgroup.procs"`)
    return ['sh', '-c', `${joins.join(' && ')} && exec "$@"`, 'sh']
  }

  /** Ends all that runs in it, also what is begun meanwhile, and closes it. */
  async end(): Promise<void> {
    for (;;) {
      const pids = readFileSync(join(this.#cpu, 'cgroup.procs'), 'utf8').split('\n')
      if (pids[0] === '') break
      for (const pid of pids) {
        try {
          if (pid !== '') process.kill(Number(pid), 'SIGKILL')
        } catch {
          // It has ended.
        }
      }
      await pause(10)
    }
    // What has ended may hold the group for a moment.
    await until('the group is let go', 20_000, () => {
      try {
        this.close()
        return true
      } catch {
        return false
      }
    })
  }

  usage(): Usage {
    const kill = (file: string) =>
      Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(this.#memory, file), 'utf8'))?.[1] ?? 0)
    return this.#mounts.version === 2
      ? { peakBytes: this.#number('memory.peak'), kills: kill('memory.events') }
      : { peakBytes: this.#number('memory.max_usage_in_bytes'), kills: kill('memory.oom_control') }
  }

  /** After all that ran in it has ended. */
  close(): void {
    for (const directory of new Set([this.#cpu, this.#memory]))
      if (existsSync(directory)) rmdirSync(directory)
  }

  #number(file: string): number {
    return Number(readFileSync(join(this.#memory, file), 'utf8'))
  }

  #write(directory: string, file: string, value: string | number): void {
    writeFileSync(join(directory, file), String(value))
  }
}

function found(): Mounts | undefined {
  if (process.getuid?.() !== 0) return undefined
  const all = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map(line => line.split(' '))
  const first = (controller: string) =>
    all.find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes(controller))?.[1]
  const [cpu, memory] = [first('cpu'), first('memory')]
  if (cpu !== undefined && memory !== undefined) return { version: 1, cpu, memory }
  const unified = all.find(([, , type]) => type === 'cgroup2')?.[1]
  if (unified === undefined || !existsSync(join(unified, 'cgroup.subtree_control'))) return undefined
  const given = readFileSync(join(unified, 'cgroup.subtree_control'), 'utf8').split(/\s/)
  return given.includes('cpu') && given.includes('memory')
    ? { version: 2, cpu: unified, memory: unified }
    : undefined
}
