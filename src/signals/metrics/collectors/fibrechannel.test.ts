import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { fibrechannel } from './fibrechannel.ts'

const samples = (lines: readonly string[]) => lines.filter(line => !line.startsWith('#'))

test('hosts are shown with what they count', async () => {
  const { lines, outcome } = await readWith(fibrechannel)
  assert.equal(outcome, 'success')
  // The driver does not count aborted packets.
  assert.deepEqual(samples(lines), [
    'node_fibrechannel_dumped_frames_total{fc_host="host3"} 0',
    'node_fibrechannel_error_frames_total{fc_host="host3"} 5',
    'node_fibrechannel_info{dev_loss_tmo="30",fabric_name="1000c4f57c2a1b00",fc_host="host3",port_id="010a00",port_name="21000024ff7a0b1c",port_state="Online",port_type="NPort (fabric via point-to-point)",speed="16 Gbit",supported_classes="Class 3",supported_speeds="4 Gbit, 8 Gbit, 16 Gbit",symbolic_name="QLE2692 \\"upper\\" FW:v9.08.02"} 1',
    'node_fibrechannel_invalid_crc_total{fc_host="host3"} 2',
    'node_fibrechannel_invalid_tx_words_total{fc_host="host3"} 31',
    'node_fibrechannel_link_failure_total{fc_host="host3"} 3',
    'node_fibrechannel_loss_of_signal_total{fc_host="host3"} 4',
    'node_fibrechannel_loss_of_sync_total{fc_host="host3"} 6',
    'node_fibrechannel_nos_total{fc_host="host3"} 7',
    'node_fibrechannel_rx_frames_total{fc_host="host3"} 4096',
    'node_fibrechannel_rx_words_total{fc_host="host3"} 8192',
    'node_fibrechannel_seconds_since_last_reset_total{fc_host="host3"} 99',
    'node_fibrechannel_tx_frames_total{fc_host="host3"} 2048',
    'node_fibrechannel_tx_words_total{fc_host="host3"} 2304',
  ])
})

test('what a driver leaves out is an empty label, or no counter', async t => {
  const files = {
    'sys/class/fc_host/host9/speed': 'unknown\n',
    'sys/class/fc_host/host9/statistics/nos_count': '12\n',
    'sys/class/fc_host/host9/statistics/fcp_packet_aborts': '0x4\n',
  }
  const { lines, outcome } = await readWith(fibrechannel, {}, treeOf(t, files))
  assert.equal(outcome, 'success')
  assert.equal(samples(lines).length, 3)
  assert.match(lines.join('\n'), /port_state="",port_type="",speed="unknown"/)
  assert.ok(lines.includes('node_fibrechannel_nos_total{fc_host="host9"} 12'))
  assert.ok(lines.includes('node_fibrechannel_fcp_packet_aborts_total{fc_host="host9"} 4'))
})

test('without hosts there is no data', async t => {
  assert.equal((await readWith(fibrechannel, {}, treeOf(t, {}))).outcome, 'no_data')
})

test('junk is no success', async t => {
  const host = 'sys/class/fc_host/host3'
  await survivesJunk(t, fibrechannel, [`${host}/statistics/rx_words`])
  await survivesJunk(t, fibrechannel, [`${host}/symbolic_name`], {}, true)
})
