import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { treeOf } from '../../../../test/helpers/collector.ts'
import { parseExposition } from '../../../../test/helpers/exposition.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { boundsOf } from './bounds.ts'
import { exporterFamilies, showBuild, showExporter } from './exporter-metrics.ts'
import { Page, type Source } from './page.ts'

const bounds = boundsOf({
  enabled: false,
  max_metrics: 0,
  include_metrics: [],
  exclude_metrics: [],
  drop_labels: [],
})
const source = (): Source => ({ name: '', round: 0, duplicates: 0 })

function hostAt(procfs: string): HostFiles {
  return new HostFiles({ procfs, sysfs: '/sys', rootfs: '/', udev: '/' })
}

test('the process and its scrapes are told as they are', t => {
  const page = new Page({ namespace: 'node', bounds })
  const [build, exporter] = [source(), source()]
  const host = hostAt('/proc')
  t.after(() => host.close())
  showBuild(page, build, { version: '1.2.3', revision: 'abc' })
  showExporter(page, exporter, host.proc, { answered: { 200: 5, 500: 1, 503: 2 }, inFlight: 3 })
  const { families } = parseExposition(page.write(new Set([build, exporter])).text, 'text')
  assert.deepEqual(
    [...families.keys()],
    ['node_exporter_build_info', ...exporterFamilies.map(({ name }) => name).sort()],
  )
  const value = (name: string) => families.get(name)!.samples[0]!.value
  const near = (name: string, want: number, by: number) =>
    assert.ok(Math.abs(value(name) - want) <= by, `${name} is ${value(name)}, not ${want}`)
  const { user, system } = process.cpuUsage()
  near('process_cpu_seconds_total', (user + system) / 1e6, 5)
  near('process_open_fds', readdirSync('/proc/self/fd').length - 1, 3)
  near('process_resident_memory_bytes', process.memoryUsage.rss(), 50e6)
  near('process_start_time_seconds', Date.now() / 1000 - process.uptime(), 5)
  assert.ok(value('process_open_fds') > 3 && value('process_open_fds') < value('process_max_fds'))
  assert.ok(value('process_virtual_memory_bytes') > value('process_resident_memory_bytes'))
  assert.ok(value('process_virtual_memory_bytes') <= value('process_virtual_memory_max_bytes'))
  assert.ok(value('process_network_receive_bytes_total') >= 0)
  const codes = families.get('promhttp_metric_handler_requests_total')!.samples
  assert.deepEqual(
    codes.map(({ labels, value }) => [labels.code, value]),
    [
      ['200', 5],
      ['500', 1],
      ['503', 2],
    ],
  )
  assert.equal(value('promhttp_metric_handler_requests_in_flight'), 3)
})

test('without /proc only what it tells is missing', t => {
  const page = new Page({ namespace: 'node', bounds })
  const exporter = source()
  const host = hostAt(treeOf(t, {}))
  showExporter(page, exporter, host.proc, { answered: {}, inFlight: 0 })
  const { text } = page.write(new Set([exporter]))
  assert.match(text, /^process_cpu_seconds_total /m)
  assert.doesNotMatch(text, /process_(resident|virtual_memory_bytes|open_fds|network)|NaN/)
})
