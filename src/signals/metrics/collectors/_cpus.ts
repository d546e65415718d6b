import type { OtelName } from '../../../foundation/model/collector.ts'
import type { TableFile } from './_table-file.ts'
import type { Tree } from './collector.ts'

export interface Cpu {
  /** Label value. */
  readonly number: string
  /** Path below /sys. */
  readonly path: string
}

/** Frequency reported by the hardware; the frequency set by the kernel is that of the logical CPU. */
export const speedName: OtelName = {
  name: 'hw.cpu.speed',
  unit: 'Hz',
  kind: 'gauge',
  attributes: { cpu: 'hw.id' },
}

/** Shared by two collectors that show `cpu_frequency_hertz` with different labels, as a family has one HELP text. */
export const frequencyHelp = 'Frequency at which the CPU runs.'

/** More CPUs than the kernel supports. */
const mostCpus = 65_536

/**
 * CPUs in /sys, in byte order of their names (10 before 2). Returns the same list object until a CPU
 * is added, removed, or switched on or off.
 */
export function cpuList(sys: Tree): () => readonly Cpu[] {
  const directory = 'devices/system/cpu'
  let known: readonly Cpu[] = []
  let seen: string | undefined
  return () => {
    const present = sys.find(`${directory}/present`)
    const online = sys.find(`${directory}/online`)
    const now = `${present};${online}`
    if (now !== seen || online === undefined) {
      seen = now
      known = sys
        .list(directory)
        .filter(name => /^cpu\d+$/.test(name))
        .map(name => ({ number: name.slice(3), path: `${directory}/${name}` }))
    }
    return known
  }
}

/** CPUs of a list such as `0,3-5` (kernel, "cpulist"). Throws if invalid; `path` is its file. */
export function parseCpus(text: string, path: string): readonly number[] {
  const cpus: number[] = []
  for (const part of text.split(',')) {
    if (part === '') continue
    const range = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part)
    const first = Number(range?.[1])
    const last = Number(range?.[2] ?? range?.[1])
    if (!(first <= last) || cpus.length + last - first >= mostCpus)
      throw new Error(`cannot read ${path}: not a list of CPUs`)
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu)
  }
  return cpus
}

/** CPU numbers in the header line of a table. Throws without such a header. */
export function cpuHead(file: TableFile): readonly string[] {
  file.line()
  const cpus: string[] = []
  while (!file.done) {
    const name = file.text()
    if (!/^CPU\d{1,5}$/.test(name)) throw file.fault('no CPUs in the header')
    cpus.push(name.slice(3))
  }
  if (cpus.length === 0) throw file.fault('no header')
  return cpus
}
