// What the kernel tells of memory in /proc/meminfo and /proc/vmstat.
import type { Row } from './dashboard.ts'
import type { Panel, Queries } from './panel.ts'
import { lines } from './panel-kinds.ts'

/** Fields of /proc/meminfo by their own names. */
function fields(title: string, description: string, names: readonly string[]): Panel {
  const queries: Queries = Object.fromEntries(names.map(name => [name, `node_memory_${name}_bytes{HOST}`]))
  return lines(title, description, 'bytes', queries, { min: 0 })
}

const meminfo: Row = {
  title: 'Memory Meminfo',
  folded: true,
  panels: [
    fields('Memory Active / Inactive', 'Pages that were used of late, and pages that are taken back first.', [
      'Active',
      'Inactive',
    ]),
    fields('Memory Active / Inactive Detail', 'The same, of files and of programs.', [
      ...['Active_file', 'Inactive_file'],
      ...['Active_anon', 'Inactive_anon'],
    ]),
    fields(
      'Memory Committed',
      'Memory that programs asked for, and how much of that the kernel would grant.',
      ['Committed_AS', 'CommitLimit'],
    ),
    fields('Memory Writeback and Dirty', 'What waits to be written to disks, and what is being written.', [
      'Writeback',
      'WritebackTmp',
      'Dirty',
    ]),
    fields('Memory Shared and Mapped', 'Files in the memory of programs, and memory that programs share.', [
      'Mapped',
      'Shmem',
    ]),
    fields('Memory Slab', 'Memory of the kernel for its own objects.', ['SUnreclaim', 'SReclaimable']),
    fields('Memory Vmalloc', 'Address space of the kernel that is in use.', ['VmallocUsed', 'VmallocChunk']),
    fields('Memory Bounce', 'Copies for devices that reach only a part of memory.', ['Bounce']),
    fields('Memory Anonymous', 'Memory of programs that is no file, and that of huge pages.', [
      'AnonPages',
      'AnonHugePages',
    ]),
    fields('Memory Kernel / CPU', 'Stacks in the kernel, and data for each CPU.', ['KernelStack', 'Percpu']),
    lines(
      'Memory HugePages Counter',
      'Huge pages that are free, promised, or more than were asked for.',
      'short',
      {
        Free: 'node_memory_HugePages_Free{HOST}',
        Reserved: 'node_memory_HugePages_Rsvd{HOST}',
        Surplus: 'node_memory_HugePages_Surp{HOST}',
      },
    ),
    lines('Memory HugePages Size', 'How many huge pages there are, in bytes.', 'bytes', {
      Total: 'node_memory_HugePages_Total{HOST} * node_memory_Hugepagesize_bytes{HOST}',
    }),
    fields('Memory DirectMap', 'How the kernel maps all memory: by larger and smaller pages.', [
      'DirectMap1G',
      'DirectMap2M',
      'DirectMap4k',
    ]),
    fields('Memory Unevictable and MLocked', 'Pages that cannot be taken back.', ['Unevictable', 'Mlocked']),
  ],
}

const vmstat: Row = {
  title: 'Memory Vmstat',
  folded: true,
  panels: [
    lines(
      'Memory Pages In / Out',
      'Kibibytes that were read from and written to disks.',
      'KiBs',
      {
        In: 'rate(node_vmstat_pgpgin{HOST}[RATE])',
        Out: 'rate(node_vmstat_pgpgout{HOST}[RATE])',
      },
      { below: 'Out' },
    ),
    lines(
      'Memory Pages Swap In / Out',
      'Pages that came from and went to swap.',
      'ops',
      {
        In: 'rate(node_vmstat_pswpin{HOST}[RATE])',
        Out: 'rate(node_vmstat_pswpout{HOST}[RATE])',
      },
      { below: 'Out' },
    ),
    lines('Memory Page Faults', 'Faults that wanted a disk (major), and all others (minor).', 'ops', {
      Major: 'rate(node_vmstat_pgmajfault{HOST}[RATE])',
      Minor: 'rate(node_vmstat_pgfault{HOST}[RATE]) - rate(node_vmstat_pgmajfault{HOST}[RATE])',
    }),
    lines(
      'OOM Killer',
      'Processes that the kernel killed for want of memory.',
      'short',
      {
        Kills: 'increase(node_vmstat_oom_kill{HOST}[RATE])',
      },
      { min: 0 },
    ),
  ],
}

export const memoryRows: readonly Row[] = [meminfo, vmstat]
