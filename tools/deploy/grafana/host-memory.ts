// Memory, from /proc/meminfo and /proc/vmstat.
import type { Row } from './dashboard.ts'
import type { Panel, Queries } from './panel.ts'
import { lines } from './panel-kinds.ts'

/** Fields of /proc/meminfo, with their original names. */
function fields(title: string, description: string, names: readonly string[]): Panel {
  const queries: Queries = Object.fromEntries(names.map(name => [name, `node_memory_${name}_bytes{HOST}`]))
  return lines(title, description, 'bytes', queries, { min: 0 })
}

const meminfo: Row = {
  title: 'Memory Meminfo',
  folded: true,
  panels: [
    fields('Memory Active / Inactive', 'Recently used pages, and pages that are reclaimed first.', [
      'Active',
      'Inactive',
    ]),
    fields('Memory Active / Inactive Detail', 'The same, for files and programs.', [
      ...['Active_file', 'Inactive_file'],
      ...['Active_anon', 'Inactive_anon'],
    ]),
    fields(
      'Memory Committed',
      'Memory that programs requested, and the amount that the kernel would grant.',
      ['Committed_AS', 'CommitLimit'],
    ),
    fields('Memory Writeback and Dirty', 'Memory waiting to be written to disks, and memory being written.', [
      'Writeback',
      'WritebackTmp',
      'Dirty',
    ]),
    fields('Memory Shared and Mapped', 'Files mapped into programs, and memory that programs share.', [
      'Mapped',
      'Shmem',
    ]),
    fields('Memory Slab', 'Kernel memory for its own objects.', ['SUnreclaim', 'SReclaimable']),
    fields('Memory Vmalloc', 'Kernel address space in use.', ['VmallocUsed', 'VmallocChunk']),
    fields('Memory Bounce', 'Copies for devices that reach only a part of memory.', ['Bounce']),
    fields('Memory Anonymous', 'Program memory without a file, and huge pages.', [
      'AnonPages',
      'AnonHugePages',
    ]),
    fields('Memory Kernel / CPU', 'Kernel stacks, and per-CPU data.', ['KernelStack', 'Percpu']),
    lines('Memory HugePages Counter', 'Huge pages that are free, reserved, or surplus.', 'short', {
      Free: 'node_memory_HugePages_Free{HOST}',
      Reserved: 'node_memory_HugePages_Rsvd{HOST}',
      Surplus: 'node_memory_HugePages_Surp{HOST}',
    }),
    lines('Memory HugePages Size', 'Total size of huge pages, in bytes.', 'bytes', {
      Total: 'node_memory_HugePages_Total{HOST} * node_memory_Hugepagesize_bytes{HOST}',
    }),
    fields('Memory DirectMap', 'How the kernel maps all memory: with larger and smaller pages.', [
      'DirectMap1G',
      'DirectMap2M',
      'DirectMap4k',
    ]),
    fields('Memory Unevictable and MLocked', 'Pages that cannot be reclaimed.', ['Unevictable', 'Mlocked']),
  ],
}

const vmstat: Row = {
  title: 'Memory Vmstat',
  folded: true,
  panels: [
    lines(
      'Memory Pages In / Out',
      'Kibibytes read from and written to disks.',
      'KiBs',
      {
        In: 'rate(node_vmstat_pgpgin{HOST}[RATE])',
        Out: 'rate(node_vmstat_pgpgout{HOST}[RATE])',
      },
      { below: 'Out' },
    ),
    lines(
      'Memory Pages Swap In / Out',
      'Pages read from and written to swap.',
      'ops',
      {
        In: 'rate(node_vmstat_pswpin{HOST}[RATE])',
        Out: 'rate(node_vmstat_pswpout{HOST}[RATE])',
      },
      { below: 'Out' },
    ),
    lines('Memory Page Faults', 'Faults that needed a disk (major), and all others (minor).', 'ops', {
      Major: 'rate(node_vmstat_pgmajfault{HOST}[RATE])',
      Minor: 'rate(node_vmstat_pgfault{HOST}[RATE]) - rate(node_vmstat_pgmajfault{HOST}[RATE])',
    }),
    lines(
      'OOM Killer',
      'Processes that the kernel killed because memory ran out.',
      'short',
      {
        Kills: 'increase(node_vmstat_oom_kill{HOST}[RATE])',
      },
      { min: 0 },
    ),
  ],
}

export const memoryRows: readonly Row[] = [meminfo, vmstat]
