// The agent at a glance, and the balance sheet of all items.
import type { Row } from './dashboard.ts'
import { signalItems, unintended } from './items.ts'
import { lines, stat } from './panel-kinds.ts'

const each = (legend: string, expr: (items: string, signal: string) => string) =>
  Object.fromEntries(
    Object.entries(signalItems).map(([signal, items]) => [
      legend.replace('SIGNAL', signal),
      expr(items, signal),
    ]),
  )
const orNone = (expr: string) => `(${expr} or vector(0))`
const rate = (name: string, by: string) => `sum by (${by}) (rate(svc_${name}{AGENT}[RATE]))`

/** Items collected or found in the queue, minus items that left it and items in it. */
const unaccounted = (items: string, signal: string) =>
  [
    `sum(svc_${items}_collected_total{AGENT}) + ${orNone(`sum(svc_export_queue_recovered_total{signal_type="${signal}",AGENT})`)}`,
    orNone(`sum(svc_${items}_exported_total{AGENT})`),
    orNone(`sum(svc_${items}_dropped_total{AGENT})`),
    orNone(`sum(svc_export_queue_size{signal_type="${signal}",AGENT})`),
  ].join(' - ')

const glance: Row = {
  title: 'At a glance',
  panels: [
    stat('Agents', 'Agents that responded to the last scrape.', 'short', 'count(svc_config_info{AGENT})'),
    stat(
      'Items lost',
      'Items of all signals lost in the time range, except intended losses.',
      'short',
      {
        '': Object.values(signalItems)
          .map(items => orNone(`sum(increase(svc_${items}_dropped_total{${unintended},AGENT}[$__range]))`))
          .join(' + '),
      },
      { warn: 1, decimals: 0 },
    ),
    stat('Items waiting', 'Items waiting for export.', 'short', 'sum(svc_export_queue_size{AGENT})'),
    stat(
      'Degraded subsystems',
      'Subsystems that do not work, or work only in part. svc status lists them with the hint.',
      'short',
      orNone('sum(svc_degraded{AGENT})'),
      { bad: 1 },
    ),
    stat(
      'CPU',
      'CPUs used by all agents.',
      'short',
      'sum(rate(svc_process_cpu_seconds_total{AGENT}[RATE]))',
      { decimals: 3 },
    ),
    stat(
      'Memory',
      'Resident memory of the largest agent.',
      'bytes',
      'max(svc_process_resident_memory_bytes{AGENT})',
    ),
  ],
}

const balance: Row = {
  title: 'Balance sheet: collected + recovered = exported + dropped + queued',
  panels: [
    stat(
      'Unaccounted',
      'Collected and recovered, minus exported, dropped and queued. If it is not 0, svc lost items without counting them: please report that.',
      'short',
      each('SIGNAL', unaccounted),
      { width: 24, bad: 1 },
    ),
    lines(
      'Collected',
      'Items that svc made or read, by signal.',
      'ops',
      each('SIGNAL', items => `sum(rate(svc_${items}_collected_total{AGENT}[RATE]))`),
      { min: 0 },
    ),
    lines(
      'Exported',
      'Items that a receiver accepted, by signal and endpoint.',
      'ops',
      each('SIGNAL {{endpoint}}', items => rate(`${items}_exported_total`, 'endpoint')),
      { min: 0 },
    ),
    lines(
      'Dropped',
      'Lost items, by signal and reason; no_endpoint and sampled are intended.',
      'ops',
      each('SIGNAL {{reason}}', items => rate(`${items}_dropped_total`, 'reason')),
      { min: 0 },
    ),
    lines(
      'Spans by protocol',
      'Spans, by protocol.',
      'ops',
      { '{{signal_type}}': rate('spans_collected_total', 'signal_type') },
      { min: 0 },
    ),
  ],
}

export const balanceRows: readonly Row[] = [glance, balance]
