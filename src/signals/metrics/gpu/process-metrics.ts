import type { Metric } from '../../../foundation/model/metric.ts'
import type { NvmlDevice } from '../../../kernel/native.ts'
import { tasks } from './gpu-metrics.ts'
import type { GpuPlace } from './gpu-place.ts'
import { fraction, type GpuPoints } from './gpu-points.ts'

/** Numbers per row of `processes` and of `samples` (`NvmlDevice`). */
const processRow = 4
const sampleRow = 6

/** A process on a GPU, or on one instance of it. */
interface Use {
  readonly pid: number
  readonly gpuInstance: number
  /** Bytes; undefined if unknown. */
  memory: number | undefined
}

/** Metrics of each process that uses a GPU, by pid. `places`: attributes of the GPUs; undefined for an unknown GPU. */
export function processMetrics(
  devices: readonly NvmlDevice[],
  places: readonly (GpuPlace | undefined)[],
  newPoints: () => GpuPoints,
): Map<number, Metric[]> {
  const byPid = new Map<number, GpuPoints>()
  for (const [index, device] of devices.entries()) {
    const whole = places[index]
    if (whole === undefined) continue
    const newest = newestSamples(device.samples)
    for (const use of usesOf(device.processes)) {
      let points = byPid.get(use.pid)
      if (points === undefined) {
        points = newPoints()
        byPid.set(use.pid, points)
      }
      const instance = device.instances.find(({ gpuInstance }) => gpuInstance === use.gpuInstance)
      const place = (instance === undefined ? whole : whole.instance(instance)).brief
      points.add('svc.gpu.process.memory.usage', place, use.memory)
      if (device.samples !== undefined) addUse(points, place, device.samples, newest.get(use.pid))
    }
  }
  return new Map([...byPid].map(([pid, points]) => [pid, points.metrics()]))
}

/** A process that computes and draws has two rows, with the same memory. */
function usesOf(rows: Float64Array): Iterable<Use> {
  const uses = new Map<number, Use>()
  const counted = new Map<number, number>()
  for (let at = 0; at + processRow <= rows.length; at += processRow) {
    const pid = rows[at]!
    const bytes = rows[at + 1]!
    const gpuInstance = rows[at + 2]!
    const key = pid * 1024 + ((gpuInstance + 1) & 1023)
    let use = uses.get(key)
    if (use === undefined) {
      use = { pid, gpuInstance, memory: undefined }
      uses.set(key, use)
    }
    if (Number.isNaN(bytes)) continue
    const part = key * 1024 + ((rows[at + 3]! + 1) & 1023)
    const before = counted.get(part) ?? 0
    counted.set(part, Math.max(before, bytes))
    use.memory = (use.memory ?? 0) + Math.max(0, bytes - before)
  }
  return uses.values()
}

/** Index of the newest sample of each process. */
function newestSamples(rows: Float64Array | undefined): Map<number, number> {
  const newest = new Map<number, number>()
  if (rows === undefined) return newest
  for (let at = 0; at + sampleRow <= rows.length; at += sampleRow) {
    const before = newest.get(rows[at]!)
    if (before === undefined || rows[at + 1]! >= rows[before + 1]!) newest.set(rows[at]!, at)
  }
  return newest
}

/** A process without a sample was idle. */
function addUse(points: GpuPoints, place: GpuPlace, rows: Float64Array, at: number | undefined): void {
  const name = 'svc.gpu.process.utilization'
  points.add(name, place, at === undefined ? 0 : fraction(rows[at + 2]), tasks.general)
  points.add(name, place, at === undefined ? 0 : fraction(rows[at + 4]), tasks.encoder)
  points.add(name, place, at === undefined ? 0 : fraction(rows[at + 5]), tasks.decoder)
  points.add('svc.gpu.process.memory.busy', place, at === undefined ? 0 : fraction(rows[at + 3]))
}
