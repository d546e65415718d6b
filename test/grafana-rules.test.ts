// Each alert fires for what it is about, alone, and not for what only looks like it: by promtool, minute by minute.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { alertFile, recordingFile, rulesOf } from './helpers/grafana.ts'
import { promtoolProgram, withoutPrometheus } from './helpers/prometheus-server.ts'

/** Series → values, a minute apart (promtool's notation: `0+1x3` is 0 1 2 3, `_` no sample). */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly fires: Series
  readonly alsoFires?: readonly Series[]
  readonly quiet: readonly Series[]
  /** When it is looked at. */
  readonly at?: string
}

const agent = 'job="JOB",instance="a:19090"'
const host = 'job="JOB",instance="a:9100"'
const disk = `${host},device="/dev/sda1",device_error="",fstype="ext4",mountpoint="/data"`
const filesystem = (avail: string, readonly = 0, more = disk): Series => ({
  [`node_filesystem_avail_bytes{${more}}`]: avail,
  [`node_filesystem_size_bytes{${more}}`]: '1000x130',
  [`node_filesystem_readonly{${more}}`]: `${readonly}x130`,
})
const lost = (dropped: string, reason: string): Series => ({
  [`svc_spans_collected_total{${agent},signal_type="http"}`]: '0+1000x130',
  [`svc_spans_dropped_total{${agent},reason="${reason}"}`]: dropped,
})
/** 500 spans are lost at one time, the first for this reason; or nobody knows when, as all is seen for the first time. */
const once = (known: boolean): Series => ({
  [`svc_config_info{${agent},hash="x"}`]: known ? '1x130' : '_x50 1x80',
  [`svc_spans_collected_total{${agent},signal_type="http"}`]: known ? '0+1000x130' : '_x50 50000+1000x80',
  [`svc_spans_dropped_total{${agent},reason="disk_full"}`]: '_x50 500x80',
})
const ring = (lostValues: string): Series => ({
  [`svc_ebpf_ringbuf_events_total{${agent}}`]: '0+1000x130',
  [`svc_ebpf_ringbuf_lost_total{${agent}}`]: lostValues,
})
const queue = (bytes: string): Series => ({
  [`svc_disk_queue_bytes{${agent}}`]: bytes,
  [`svc_disk_queue_max_bytes{${agent}}`]: '1000x130',
})
const sending = 'endpoint="r:4317",signal_type="traces"'
const exports = (errors: string, successes: string, type = 'unavailable'): Series => ({
  [`svc_export_errors_total{${agent},${sending},error_type="${type}"}`]: errors,
  [`svc_export_requests_total{${agent},${sending},status="error"}`]: errors,
  [`svc_export_requests_total{${agent},${sending},status="success"}`]: successes,
})
const service = 'job="JOB",service_name="shop",http_request_method="GET"'
const requests = (good: string, bad: string): Series => ({
  [`http_server_request_duration_seconds_count{${service},http_response_status_code="200"}`]: good,
  [`http_server_request_duration_seconds_count{${service},http_response_status_code="500",error_type="500"}`]:
    bad,
})
const durations = (upTo1: string, upTo5: string): Series => ({
  [`http_server_request_duration_seconds_bucket{${service},le="1"}`]: upTo1,
  [`http_server_request_duration_seconds_bucket{${service},le="5"}`]: upTo5,
  [`http_server_request_duration_seconds_bucket{${service},le="+Inf"}`]: upTo5,
  [`http_server_request_duration_seconds_count{${service}}`]: upTo5,
})
const clock = (synchronized: number, error: number): Series => ({
  [`node_timex_sync_status{${host}}`]: `${synchronized}x130`,
  [`node_timex_maxerror_seconds{${host}}`]: `${error}x130`,
})

const cases: Readonly<Record<string, Case>> = {
  SvcDown: {
    fires: { [`up{${agent}}`]: '1x10 0x130', [`svc_config_info{${agent},hash="x"}`]: '1x10 _x130' },
    quiet: [
      { [`up{${agent}}`]: '1x130', [`svc_config_info{${agent},hash="x"}`]: '1x130' },
      { 'up{job="JOB",instance="b:1"}': '0x130' },
      { [`up{${agent}}`]: '1x57 0 0 1x60', [`svc_config_info{${agent},hash="x"}`]: '1x57 _ _ 1x60' },
    ],
  },
  SvcItemsDropped: {
    fires: lost('0+10x130', 'queue_full'),
    alsoFires: [once(true)],
    quiet: [
      once(false),
      lost('0+10x130', 'no_endpoint'),
      lost('0+0x130', 'queue_full'),
      lost('0x40 5x130', 'over_budget'),
    ],
  },
  SvcQueueFillsUp: {
    fires: queue('250+5x130'),
    alsoFires: [queue('950x130')],
    quiet: [queue('100x130'), queue('300x130'), queue('0+1x20 20-1x20 0x130'), queue('900-2x130')],
  },
  SvcExportFails: {
    fires: exports('0+1x130', '5x130'),
    quiet: [
      exports('0+1x130', '0+1x130'),
      exports('7x130', '5x130'),
      exports('0+1x130', '0x130', 'unimplemented'),
    ],
  },
  SvcDiskQueueDegraded: {
    fires: { [`svc_disk_queue_degraded{${agent}}`]: '1x130' },
    quiet: [{ [`svc_disk_queue_degraded{${agent}}`]: '0x57 1 0x130' }],
  },
  SvcRingLosses: { fires: ring('0+100x130'), quiet: [ring('0+1x130'), ring('0x130')] },
  SvcMemoryHigh: {
    fires: { [`svc_process_resident_memory_bytes{${agent}}`]: '500000000x130' },
    quiet: [{ [`svc_process_resident_memory_bytes{${agent}}`]: '150000000x130' }],
  },
  SvcDegraded: {
    fires: { [`svc_degraded{${agent},subsystem="ebpf"}`]: '1x130' },
    quiet: [
      { [`svc_degraded{${agent},subsystem="export of traces"}`]: '1x130' },
      { [`svc_degraded{${agent},subsystem="queue"}`]: '1x130' },
    ],
  },
  SvcReloadFailed: {
    fires: { [`svc_config_last_reload_successful{${agent}}`]: '1 0x130' },
    quiet: [{ [`svc_config_last_reload_successful{${agent}}`]: '1x130' }],
  },
  HostFilesystemFull: {
    fires: filesystem('20x130'),
    quiet: [
      filesystem('100x130'),
      filesystem('0x130', 1),
      filesystem('0x130', 0, disk.replace('ext4', 'squashfs')),
    ],
  },
  HostFilesystemFullSoon: {
    at: '2h',
    fires: filesystem('200-0.5x130'),
    quiet: [
      filesystem('900-0.5x130'),
      filesystem('100x130'),
      filesystem('100+0.1x130'),
      filesystem('200-0.5x130', 1),
    ],
  },
  HostOutOfMemoryKill: {
    fires: { [`node_vmstat_oom_kill{${host}}`]: '0x55 1x130' },
    quiet: [{ [`node_vmstat_oom_kill{${host}}`]: '3x130' }],
  },
  HostMemoryPressure: {
    fires: { [`node_pressure_memory_stalled_seconds_total{${host}}`]: '0+12x130' },
    quiet: [{ [`node_pressure_memory_stalled_seconds_total{${host}}`]: '0+1x130' }],
  },
  HostDiskPressure: {
    fires: { [`node_pressure_io_stalled_seconds_total{${host}}`]: '0+40x130' },
    quiet: [{ [`node_pressure_io_stalled_seconds_total{${host}}`]: '0+12x130' }],
  },
  HostClockNotSynchronized: { fires: clock(0, 16), quiet: [clock(1, 0.1), clock(0, 0.5)] },
  HostRaidDegraded: {
    fires: { [`node_md_degraded{${host},device="md0"}`]: '1x130' },
    quiet: [{ [`node_md_degraded{${host},device="md0"}`]: '0x130' }],
  },
  ServiceErrorsHigh: {
    fires: requests('0+100x130', '0+10x130'),
    quiet: [
      requests('0+100x130', '0+1x130'),
      requests('0+1x130', '0+1x130'),
      requests('0+100x130', '50x130'),
    ],
  },
  ServiceSlow: {
    fires: durations('0+90x130', '0+100x130'),
    quiet: [durations('0+99x130', '0+100x130'), durations('0x130', '0+1x130')],
  },
}

test('every alert has its cases', () => {
  const alerts = rulesOf(alertFile).map(({ alert }) => alert)
  assert.deepEqual(Object.keys(cases), alerts)
})

test('promtool takes the rules', { skip: withoutPrometheus }, () => {
  const { status, stderr } = spawnSync(promtoolProgram, ['check', 'rules', alertFile, recordingFile])
  assert.equal(status, 0, String(stderr))
})

test('each alert fires alone for what it is about, and not for what is like it', {
  skip: withoutPrometheus,
}, () => {
  const scenes = Object.entries(cases).flatMap(([alert, { fires, alsoFires = [], quiet, at = '60m' }]) => [
    ...[fires, ...alsoFires].map((series, i) => ({
      at,
      job: `${alert} fires (${i})`,
      series,
      alerts: [alert],
    })),
    ...quiet.map((series, i) => ({ at, job: `${alert} is quiet (${i})`, series, alerts: [] })),
  ])
  const times = [...new Set(scenes.map(({ at }) => at))]
  const { status, text } = promtool(
    times.map(time =>
      firing(
        scenes.filter(({ at }) => at === time),
        time,
      ),
    ),
  )
  assert.equal(status, 0, text)
})

test('an alert that does not fire where it should, or fires where it should not, is found', {
  skip: withoutPrometheus,
}, () => {
  const scene = { job: 'svc', series: cases.SvcReloadFailed!.fires }
  assert.equal(promtool([firing([{ ...scene, alerts: [] }], '60m')]).status, 1)
  assert.equal(promtool([firing([{ ...scene, alerts: ['SvcDown'] }], '60m')]).status, 1)
})

test('the texts of an alert name the place and the number', { skip: withoutPrometheus }, () => {
  const expected = {
    exp_labels: {
      severity: 'warning',
      job: 'svc',
      instance: 'a:19090',
      signal: 'traces',
      reason: 'queue_full',
    },
    exp_annotations: {
      summary: 'svc on a:19090 loses traces: queue_full',
      description: '1% of the items collected in 15 minutes were lost for this reason.',
      runbook_url: 'docs/grafana.md#svcitemsdropped',
    },
  }
  const { fires } = cases.SvcItemsDropped!
  const { status, text } = promtool([
    {
      ...firing([{ job: 'svc', series: fires, alerts: ['SvcItemsDropped'] }], '60m'),
      alert_rule_test: [{ eval_time: '60m', alertname: 'SvcItemsDropped', exp_alerts: [expected] }],
    },
  ])
  assert.equal(status, 0, text)
})

/** What happens to one job, and which alerts it has then. */
interface Scene {
  readonly job: string
  readonly series: Series
  readonly alerts: readonly string[]
}

/** One test of promtool, of many jobs side by side: which alerts each of them has at that time. */
function firing(scenes: readonly Scene[], at: string) {
  return {
    interval: '1m',
    input_series: scenes.flatMap(({ job, series }) =>
      Object.entries(series).map(([key, values]) => ({ series: key.replace('JOB', job), values })),
    ),
    promql_expr_test: [
      {
        expr: 'count by (alertname, job) (ALERTS{alertstate="firing"})',
        eval_time: at,
        exp_samples: scenes.flatMap(({ job, alerts }) =>
          alerts.map(alert => ({ labels: `{alertname="${alert}",job="${job}"}`, value: 1 })),
        ),
      },
    ],
  }
}

function promtool(tests: readonly object[]): { status: number | null; text: string } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-rules-'))
  try {
    const file = join(folder, 'tests.yaml')
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [recordingFile, alertFile], evaluation_interval: '1m', tests }),
    )
    const { status, stdout, stderr } = spawnSync(promtoolProgram, ['test', 'rules', file])
    return { status, text: `${stdout}${stderr}` }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
