// Data from the kernel, and its processing before export.
import type { Row } from './dashboard.ts'
import { lines, table } from './panel-kinds.ts'

const rate = (name: string, by: string) => `sum by (${by}) (rate(svc_${name}{AGENT}[RATE]))`

export const captureRow: Row = {
  title: 'Capture (eBPF)',
  panels: [
    lines(
      'Programs loaded',
      'eBPF programs by type. None: the kernel rejected them, or no enabled feature needs them.',
      'short',
      { '{{program_type}}': 'sum by (program_type) (svc_ebpf_programs_loaded{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Ring buffer',
      'Records read from the ring, and records lost because it was full; their requests are still in the metrics.',
      'ops',
      {
        read: 'sum(rate(svc_ebpf_ringbuf_events_total{AGENT}[RATE]))',
        lost: 'sum(rate(svc_ebpf_ringbuf_lost_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
    lines('Kernel side', 'Counters of the programs in the kernel, by event.', 'ops', {
      '{{event}}': rate('ebpf_capture_total', 'event'),
    }),
    lines(
      'Map entries',
      'Entries of the largest maps.',
      'short',
      { '{{map_name}}': 'topk(10, sum by (map_name) (svc_ebpf_map_entries{AGENT}))' },
      { min: 0 },
    ),
    lines(
      'Spans joined',
      'Server spans whose client was found on this host, and those whose wait timed out.',
      'ops',
      {
        joined: 'sum(rate(svc_spans_joined_total{AGENT}[RATE]))',
        'in vain': 'sum(rate(svc_spans_unjoined_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
    lines(
      'Request metrics without room',
      'Calls without their own series.',
      'ops',
      {
        overflow: 'sum(rate(svc_request_metrics_overflowed_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
    lines(
      'Processors',
      'Results of limits, rules and redaction.',
      'ops',
      { '{{processor}} {{rule}} {{outcome}}': rate('processor_outcomes_total', 'processor, rule, outcome') },
      { min: 0 },
    ),
    table(
      'Degraded',
      'Subsystems that do not work, or work only in part, and the number of reasons.',
      'short',
      { Reasons: 'sum by (instance, subsystem) (svc_degraded{AGENT})' },
      { width: 12, height: 8 },
    ),
  ],
}
