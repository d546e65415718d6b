import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../test/helpers/collector.ts'
import { infiniband } from './infiniband.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))
const port = 'sys/class/infiniband/mlx5_0/ports/1'

test('ports are shown with what their drivers count', async () => {
  const { lines, outcome } = await readWith(infiniband)
  assert.equal(outcome, 'success')
  assert.deepEqual(samples(lines), [
    'node_infiniband_info{board_id="",device="irdma1",firmware_version="1.60",hca_type=""} 1',
    'node_infiniband_info{board_id="",device="mthca0",firmware_version="4.7.6",hca_type="MT23108"} 1',
    'node_infiniband_info{board_id="MT_0000000223",device="mlx5_0",firmware_version="20.35.1012",hca_type="MT4123"} 1',
    'node_infiniband_legacy_data_received_bytes_total{device="mthca0",port="1"} 400',
    'node_infiniband_legacy_packets_transmitted_total{device="mthca0",port="1"} 12',
    'node_infiniband_lifespan_seconds{device="mlx5_0",port="1"} 10',
    'node_infiniband_link_downed_total{device="mthca0",port="1"} 1',
    'node_infiniband_out_of_buffer_drops_total{device="mlx5_0",port="1"} 6',
    'node_infiniband_physical_state_id{device="irdma1",port="1"} 3',
    'node_infiniband_physical_state_id{device="mlx5_0",port="1"} 5',
    'node_infiniband_physical_state_id{device="mthca0",port="1"} 5',
    'node_infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"} 1000',
    'node_infiniband_port_data_transmitted_bytes_total{device="mlx5_0",port="1"} 4000',
    'node_infiniband_port_packets_received_total{device="mlx5_0",port="1"} 17',
    'node_infiniband_rate_bytes_per_second{device="irdma1",port="1"} 3.125e+08',
    'node_infiniband_rate_bytes_per_second{device="mlx5_0",port="1"} 1.25e+10',
    'node_infiniband_rate_bytes_per_second{device="mthca0",port="1"} 1.25e+09',
    'node_infiniband_roce_slow_restart_total{device="mlx5_0",port="1"} 3',
    'node_infiniband_roce_slow_restart_used_total{device="mlx5_0",port="1"} 4',
    'node_infiniband_state_id{device="irdma1",port="1"} 1',
    'node_infiniband_state_id{device="mlx5_0",port="1"} 4',
    'node_infiniband_state_id{device="mthca0",port="1"} 2',
    'node_infiniband_symbol_error_total{device="mlx5_0",port="1"} 2',
  ])
})

test('devices are filtered before they are read', async t => {
  const devices = async (options: Record<string, string>, root?: string) => {
    const { lines, outcome } = await readWith(infiniband, options, root)
    return [outcome, ...samples(lines).flatMap(line => /_info\{.*device="(\w+)"/.exec(line)?.[1] ?? [])]
  }
  assert.deepEqual(await devices({ device_include: '^m' }), ['success', 'mthca0', 'mlx5_0'])
  const root = copyOfTree(t)
  writeFileSync(`${root}/sys/class/infiniband/irdma1/ports/1/rate`, '\n')
  assert.equal((await devices({}, root))[0], 'failed')
  assert.deepEqual(await devices({ device_exclude: 'irdma' }, root), ['success', 'mthca0', 'mlx5_0'])
  await assert.rejects(
    devices({ device_include: 'a', device_exclude: 'b' }),
    /infiniband: include and exclude/,
  )
})

test('without devices, or what each has, there is no data', async t => {
  assert.equal((await readWith(infiniband, {}, treeOf(t, {}))).outcome, 'no_data')
  const root = treeOf(t, {})
  mkdirSync(`${root}/sys/class/infiniband`, { recursive: true })
  assert.equal((await readWith(infiniband, {}, root)).outcome, 'success')
  const other = copyOfTree(t)
  rmSync(`${other}/${port}/state`)
  assert.equal((await readWith(infiniband, {}, other)).outcome, 'no_data')
})

test('junk is no success', async t => {
  const files = ['state', 'phys_state', 'rate', 'counters/port_rcv_data', 'hw_counters/lifespan']
  await survivesJunk(
    t,
    infiniband,
    files.map(file => `${port}/${file}`),
  )
})
