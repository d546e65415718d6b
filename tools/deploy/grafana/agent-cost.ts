// Logs, metadata and targets that the agent reads; its process, configuration and API.
import type { Row } from './dashboard.ts'
import { lines, table } from './panel-kinds.ts'

const rate = (name: string, by: string) => `sum by (${by}) (rate(svc_${name}{AGENT}[RATE]))`

const sources: Row = {
  title: 'Sources',
  folded: true,
  panels: [
    lines(
      'Log records',
      'Log records read, by source.',
      'ops',
      { '{{source}}': rate('log_records_total', 'source') },
      { min: 0 },
    ),
    lines(
      'Logs behind',
      'Bytes of followed files not read yet.',
      'bytes',
      { '{{instance}}': 'svc_log_behind_bytes{AGENT}' },
      { min: 0 },
    ),
    lines(
      'Logs lost',
      'Rotated files removed before they were read, and truncated files.',
      'short',
      {
        rotations: 'sum(increase(svc_log_lost_rotations_total{AGENT}[RATE]))',
        truncations: 'sum(increase(svc_log_truncations_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
    lines(
      'Metadata',
      '1 if a source of containers, pods or clouds responds.',
      'short',
      { '{{instance}} {{source}}': 'svc_discovery_connected{AGENT}' },
      { min: 0, max: 1 },
    ),
    lines(
      'Targets',
      'Scrape targets, by the result of their last scrape.',
      'short',
      { '{{health}}': 'sum by (health) (svc_scrape_targets{AGENT})' },
      { min: 0 },
    ),
    lines(
      'Scrapes',
      'Scrapes that succeeded, failed, or were skipped because the previous one took too long.',
      'ops',
      {
        all: 'sum(rate(svc_scrapes_total{AGENT}[RATE]))',
        failed: 'sum(rate(svc_scrape_failures_total{AGENT}[RATE]))',
        missed: 'sum(rate(svc_scrapes_missed_total{AGENT}[RATE]))',
      },
      { min: 0 },
    ),
  ],
}

const own: Row = {
  title: 'Cost and configuration',
  panels: [
    lines(
      'CPU',
      'CPUs used by each agent.',
      'short',
      { '{{instance}}': 'rate(svc_process_cpu_seconds_total{AGENT}[RATE])' },
      { min: 0, decimals: 3 },
    ),
    lines(
      'Memory',
      'Resident memory of each agent.',
      'bytes',
      { '{{instance}}': 'svc_process_resident_memory_bytes{AGENT}' },
      { min: 0 },
    ),
    lines(
      'Open files',
      'Open file descriptors of each agent.',
      'short',
      { '{{instance}}': 'svc_process_open_fds{AGENT}' },
      { min: 0 },
    ),
    lines(
      'Reloads',
      'Reloads of the configuration by result, and whether the last one succeeded.',
      'short',
      {
        '{{instance}} {{result}}': 'increase(svc_config_reloads_total{AGENT}[RATE])',
        '{{instance}} last one taken': 'svc_config_last_reload_successful{AGENT}',
      },
      { min: 0 },
    ),
    table(
      'Configurations',
      'Agents by the hash of the active configuration, and when it was loaded.',
      'short',
      {
        Agents: 'count by (hash) (svc_config_info{AGENT})',
        'Last loaded':
          'max by (hash) (svc_config_last_reload_success_timestamp_seconds{AGENT} * on (job, instance) group_left (hash) svc_config_info{AGENT}) * 1000',
      },
      { width: 12, height: 8, units: { 'Last loaded': 'dateTimeAsIso' } },
    ),
    lines(
      'API',
      'Responses of the management API, and rejected requests.',
      'reqps',
      {
        '{{code}}': rate('api_responses_total', 'code'),
        'refused {{reason}}': rate('api_refused_total', 'reason'),
      },
      { min: 0 },
    ),
  ],
}

export const costRows: readonly Row[] = [sources, own]
