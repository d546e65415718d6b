import { loadNative, Unsupported } from '../../../kernel/native.ts'
import { collector, counter, gauge, NoData, type Readings } from './collector.ts'

const offset = gauge('timex_offset_seconds', 'How far the system clock is from its reference.')
const frequency = gauge(
  'timex_frequency_adjustment_ratio',
  'How fast the clock is made to run; 1 is unchanged.',
)
const maxError = gauge('timex_maxerror_seconds', 'Bound on the error of the clock.')
const estimatedError = gauge('timex_estimated_error_seconds', 'Error that the clock is thought to have.')
const status = gauge('timex_status', "Bits of the clock's status, STA_ in adjtimex(2).")
const constant = gauge('timex_loop_time_constant', 'Time constant of the phase-locked loop.')
const tick = gauge('timex_tick_seconds', 'Length of a clock tick.')
const ppsFrequency = gauge('timex_pps_frequency_hertz', 'Frequency of the pulse-per-second signal.')
const ppsJitter = gauge('timex_pps_jitter_seconds', 'Jitter of the pulse-per-second signal.')
const ppsShift = gauge('timex_pps_shift_seconds', 'Length of the calibration interval by the signal.')
const ppsStability = gauge(
  'timex_pps_stability_hertz',
  'How steady the frequency by the signal has been of late.',
)
const ppsJitterTotal = counter('timex_pps_jitter_total', 'Pulses that were off by more than is allowed.')
const ppsCalibration = counter('timex_pps_calibration_total', 'Calibrations by the signal.')
const ppsError = counter('timex_pps_error_total', 'Calibrations by the signal that failed.')
const ppsUnstable = counter(
  'timex_pps_stability_exceeded_total',
  'Calibrations after which the frequency had moved by more than is allowed.',
)
const tai = gauge('timex_tai_offset_seconds', 'International Atomic Time less UTC.')
const isSynchronized = gauge('timex_sync_status', 'Whether something keeps the clock right (1), or not (0).')

/** Bytes of struct timex on 64 bits (linux/timex.h). */
const timexBytes = 208
/** State of an unsynchronized clock. */
const timeError = 5
/** Bit of the status: offset and jitter are in nanoseconds, not microseconds. */
const isNano = 0x2000
/** Frequencies are parts per million with 16 bits after the point. */
const scaledPpm = 1e6 * 65536

/** Synchronization of the kernel clock, from adjtimex(2). */
export const timex = collector({
  name: 'timex',
  summary: 'Synchronization of the kernel clock',
  source: 'adjtimex(2)',
  enabledByDefault: true,
  metrics: [
    offset,
    frequency,
    maxError,
    estimatedError,
    status,
    constant,
    tick,
    ppsFrequency,
    ppsJitter,
    ppsShift,
    ppsStability,
    ppsJitterTotal,
    ppsCalibration,
    ppsError,
    ppsUnstable,
    tai,
    isSynchronized,
  ],
  start() {
    const buffer = Buffer.alloc(timexBytes)
    return {
      collect(readings) {
        const native = loadNative()
        if (native instanceof Unsupported) throw new Error(native.reason)
        let state: number
        try {
          state = native.adjtimex(buffer)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'EPERM')
            throw new NoData('no permission to read the clock state: adjtimex(2) is not permitted')
          throw error
        }
        showTimex(readings, buffer, state)
      },
    }
  },
})

/** Shows the fields of a `struct timex` and its clock state. */
export function showTimex(readings: Readings, bytes: Buffer, state: number): void {
  const bits = bytes.readInt32LE(40)
  const perSecond = (bits & isNano) === 0 ? 1e6 : 1e9
  readings.set(isSynchronized, state === timeError ? 0 : 1)
  readings.set(offset, long(bytes, 8) / perSecond)
  readings.set(frequency, 1 + long(bytes, 16) / scaledPpm)
  readings.set(maxError, long(bytes, 24) / 1e6)
  readings.set(estimatedError, long(bytes, 32) / 1e6)
  readings.set(status, bits)
  readings.set(constant, long(bytes, 48))
  readings.set(tick, long(bytes, 88) / 1e6)
  readings.set(ppsFrequency, long(bytes, 96) / scaledPpm)
  readings.set(ppsJitter, long(bytes, 104) / perSecond)
  readings.set(ppsShift, bytes.readInt32LE(112))
  readings.set(ppsStability, long(bytes, 120) / scaledPpm)
  readings.set(ppsJitterTotal, long(bytes, 128))
  readings.set(ppsCalibration, long(bytes, 136))
  readings.set(ppsError, long(bytes, 144))
  readings.set(ppsUnstable, long(bytes, 152))
  readings.set(tai, bytes.readInt32LE(160))
}

/** A signed 64-bit number, rounded to a double, without creating a BigInt. */
function long(bytes: Buffer, at: number): number {
  return bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)
}
