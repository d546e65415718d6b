import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { copyOfTree, readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
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

test('every counter of the standard and of mlx5 is shown by its name', async t => {
  // `file`, or `file:name` where the name is another; `*4`: it counts words of four bytes.
  const files = {
    counters: [
      'excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors',
      'multicast_rcv_packets:multicast_packets_received',
      'multicast_xmit_packets:multicast_packets_transmitted',
      'port_rcv_constraint_errors:port_constraint_errors_received',
      'port_rcv_data:port_data_received_bytes*4 port_rcv_discards:port_discards_received',
      'port_rcv_errors:port_errors_received port_rcv_packets:port_packets_received',
      'port_rcv_remote_physical_errors:port_receive_remote_physical_errors',
      'port_rcv_switch_relay_errors:port_receive_switch_relay_errors',
      'port_xmit_constraint_errors:port_constraint_errors_transmitted',
      'port_xmit_data:port_data_transmitted_bytes*4 port_xmit_discards:port_discards_transmitted',
      'port_xmit_packets:port_packets_transmitted port_xmit_wait:port_transmit_wait symbol_error',
      'unicast_rcv_packets:unicast_packets_received',
      'unicast_xmit_packets:unicast_packets_transmitted VL15_dropped:vl15_dropped',
    ],
    counters_ext: [
      'port_multicast_rcv_packets:legacy_multicast_packets_received',
      'port_multicast_xmit_packets:legacy_multicast_packets_transmitted',
      'port_rcv_data_64:legacy_data_received_bytes*4 port_rcv_packets_64:legacy_packets_received',
      'port_unicast_rcv_packets:legacy_unicast_packets_received',
      'port_unicast_xmit_packets:legacy_unicast_packets_transmitted',
      'port_xmit_data_64:legacy_data_transmitted_bytes*4',
      'port_xmit_packets_64:legacy_packets_transmitted',
    ],
    hw_counters: [
      'duplicate_request:duplicate_requests_packets implied_nak_seq_err:implied_nak_seq_errors',
      'local_ack_timeout_err:local_ack_timeout_errors np_cnp_sent:np_cnp_packets_sent',
      'np_ecn_marked_roce_packets:np_ecn_marked_roce_packets_received',
      'out_of_buffer:out_of_buffer_drops out_of_sequence:out_of_sequence_packets_received',
      'packet_seq_err:packet_sequence_errors req_cqe_error:req_cqes_errors',
      'req_cqe_flush_error:req_cqes_flush_errors req_remote_access_errors',
      'req_remote_invalid_request:req_remote_invalid_request_errors resp_cqe_error:resp_cqes_errors',
      'resp_cqe_flush_error:resp_cqes_flush_errors resp_local_length_error:resp_local_length_errors',
      'resp_remote_access_errors rnr_nak_retry_err:rnr_nak_retry_packets_received',
      'roce_adp_retrans:roce_adp_retransmits roce_adp_retrans_to:roce_adp_retransmits_timeout',
      'roce_slow_restart:roce_slow_restart_used roce_slow_restart_cnps',
      'roce_slow_restart_trans:roce_slow_restart rp_cnp_handled:rp_cnp_packets_handled',
      'rp_cnp_ignored:rp_cnp_ignored_packets_received rx_atomic_requests',
      'rx_dct_connect:rx_dct_connect_requests rx_icrc_encapsulated:rx_icrc_encapsulated_errors',
      'rx_read_requests rx_write_requests',
    ],
  }
  const all = Object.entries(files).flatMap(([directory, lines]) =>
    lines
      .flatMap(line => line.split(' '))
      .map(each => /^(\w+?)(?::(\w+))?(?:\*(4))?$/.exec(each)!)
      .map(([, file, name = file, factor = '1']) => ({
        path: `${directory}/${file}`,
        name,
        factor: Number(factor),
      })),
  )
  const counts = Object.fromEntries(all.map(({ path }, i) => [`${port}/${path}`, `${i + 1}\n`]))
  const state = { state: '4: ACTIVE', phys_state: '5: LinkUp', rate: '100 Gb/sec (4X EDR)' }
  const root = treeOf(t, {
    'sys/class/infiniband/mlx5_0/fw_ver': '20.35.1012\n',
    ...counts,
    ...Object.fromEntries(Object.entries(state).map(([file, text]) => [`${port}/${file}`, `${text}\n`])),
  })
  const { lines, reason } = await readWith(infiniband, {}, root)
  assert.deepEqual(
    samples(lines)
      .filter(line => /_total\{/.test(line))
      .sort(),
    all
      .map(
        ({ name, factor }, i) =>
          `node_infiniband_${name}_total{device="mlx5_0",port="1"} ${(i + 1) * factor}`,
      )
      .sort(),
    reason,
  )
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
