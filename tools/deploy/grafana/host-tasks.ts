// Pressure (PSI), and processes.
import type { Row } from './dashboard.ts'
import { lines } from './panel-kinds.ts'

const pressure = (of: string, kind: string) => `rate(node_pressure_${of}_${kind}_seconds_total{HOST}[RATE])`

const psi: Row = {
  title: 'Pressure Stall Information',
  folded: true,
  panels: [
    lines(
      'CPU Pressure',
      'Share of the time in which tasks waited for a CPU.',
      'percentunit',
      { some: pressure('cpu', 'waiting') },
      { min: 0 },
    ),
    lines(
      'Memory Pressure',
      'Share of the time in which some or all tasks waited for memory.',
      'percentunit',
      {
        some: pressure('memory', 'waiting'),
        all: pressure('memory', 'stalled'),
      },
      { min: 0 },
    ),
    lines(
      'I/O Pressure',
      'Share of the time in which some or all tasks waited for disks.',
      'percentunit',
      {
        some: pressure('io', 'waiting'),
        all: pressure('io', 'stalled'),
      },
      { min: 0 },
    ),
    lines(
      'IRQ Pressure',
      'Share of the time that interrupts took from tasks (Linux 6.1).',
      'percentunit',
      { all: pressure('irq', 'stalled') },
      { min: 0 },
    ),
  ],
}

const processes: Row = {
  title: 'System Processes',
  folded: true,
  panels: [
    lines(
      'Processes Status',
      'Running processes, and processes waiting for a disk.',
      'short',
      {
        Running: 'node_procs_running{HOST}',
        'Blocked by I/O': 'node_procs_blocked{HOST}',
      },
      { min: 0 },
    ),
    lines(
      'Processes State',
      'Processes by state. Needs the collector processes.',
      'short',
      { '{{state}}': 'node_processes_state{HOST}' },
      { stack: true, min: 0 },
    ),
    lines(
      'Processes Forks',
      'Started processes.',
      'ops',
      { Forks: 'rate(node_forks_total{HOST}[RATE])' },
      { min: 0 },
    ),
    lines(
      'PIDs Number and Limit',
      'Process ids in use. Needs the collector processes.',
      'short',
      {
        Used: 'node_processes_pids{HOST}',
        Limit: 'node_processes_max_processes{HOST}',
      },
      { min: 0 },
    ),
    lines(
      'Threads Number and Limit',
      'Threads of all processes. Needs the collector processes.',
      'short',
      {
        Used: 'node_processes_threads{HOST}',
        Limit: 'node_processes_max_threads{HOST}',
      },
      { min: 0 },
    ),
    lines(
      'Process schedule stats Running / Waiting',
      'By CPU: seconds in which tasks ran, and waited to run, per second.',
      's',
      {
        'CPU {{cpu}} running': 'rate(node_schedstat_running_seconds_total{HOST}[RATE])',
        'CPU {{cpu}} waiting': 'rate(node_schedstat_waiting_seconds_total{HOST}[RATE])',
      },
    ),
  ],
}

export const taskRows: readonly Row[] = [psi, processes]
