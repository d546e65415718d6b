import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith } from '../../../../test/helpers/collector.ts'
import type { Family, Readings } from './collector.ts'
import { showTimex, timex } from './timex.ts'

test('this host tells how it keeps the time', async () => {
  const { lines, outcome } = await readWith(timex)
  assert.equal(outcome, 'success')
  assert.equal(lines.filter(line => !line.startsWith('#')).length, 17)
  const value = (name: string) => Number(lines.find(line => line.startsWith(`${name} `))?.split(' ')[1])
  assert.ok(value('node_timex_tick_seconds') > 0.009 && value('node_timex_tick_seconds') < 0.011)
  assert.ok(Math.abs(value('node_timex_frequency_adjustment_ratio') - 1) < 0.001)
})

test('each field stands where the kernel puts it', () => {
  const show = (status: number, state: number) => {
    const bytes = Buffer.alloc(208)
    for (let at = 8; at < 168; at += 8) bytes.writeBigInt64LE(BigInt(-at), at)
    for (const at of [40, 112, 160]) bytes.writeInt32LE(at === 40 ? status : at, at)
    const values = new Map<string, number>()
    const readings: Partial<Readings> = {
      set: (family: Family, value: number) => void values.set(family.name, value),
    }
    showTimex(readings as Readings, bytes, state)
    return Object.fromEntries(values)
  }
  const ppm = 1e6 * 65536
  const common = {
    timex_frequency_adjustment_ratio: 1 - 16 / ppm,
    timex_maxerror_seconds: -24e-6,
    timex_estimated_error_seconds: -32e-6,
    timex_loop_time_constant: -48,
    timex_tick_seconds: -88e-6,
    timex_pps_frequency_hertz: -96 / ppm,
    timex_pps_shift_seconds: 112,
    timex_pps_stability_hertz: -120 / ppm,
    timex_pps_jitter_total: -128,
    timex_pps_calibration_total: -136,
    timex_pps_error_total: -144,
    timex_pps_stability_exceeded_total: -152,
    timex_tai_offset_seconds: 160,
  }
  assert.deepEqual(show(0x2001, 0), {
    ...common,
    timex_sync_status: 1,
    timex_status: 0x2001,
    timex_offset_seconds: -8e-9,
    timex_pps_jitter_seconds: -104e-9,
  })
  assert.deepEqual(show(0x40, 5), {
    ...common,
    timex_sync_status: 0,
    timex_status: 0x40,
    timex_offset_seconds: -8e-6,
    timex_pps_jitter_seconds: -104e-6,
  })
})
