import type { Metric } from '../../../foundation/model/metric.ts'
import type { NvmlAnswer, NvmlDevice, NvmlValues } from '../../../kernel/native.ts'
import {
  clocks,
  directions,
  errors,
  type GpuMetricName,
  locations,
  states,
  tasks,
  throttleBits,
} from './gpu-metrics.ts'
import { type Extra, GpuPlace } from './gpu-place.ts'
import { fraction, GpuPoints } from './gpu-points.ts'
import { processMetrics } from './process-metrics.ts'

/** Number of answers without a counter, such as of a lost GPU, after which it is forgotten. */
const mostMissed = 60

/** Last value and start of a counter. */
interface Counted {
  startUs: number
  timeUs: number
  value: number
  round: number
}

/**
 * Converts NVML's answers to metrics. Remembers the identities of GPUs, also of lost ones, and the starts of counters.
 */
export class GpuReadings {
  readonly #bootUs: number
  /** By index. */
  readonly #places: (GpuPlace | undefined)[] = []
  /** Properties that each was made from. */
  readonly #names: string[] = []
  readonly #counters = new Map<string, Counted>()
  #points: GpuPoints
  #timeUs = 0
  #round = 0

  /** `bootUs`: latest time at which all counters were zero, in microseconds since the Unix epoch. */
  constructor(bootUs: number) {
    this.#bootUs = bootUs
    this.#points = new GpuPoints(bootUs, 0)
  }

  /** Metrics of the GPUs, each with the points of all of them. */
  host(answer: NvmlAnswer, timeUs: number): Metric[] {
    this.#points = new GpuPoints(this.#bootUs, timeUs)
    this.#timeUs = timeUs
    this.#round++
    for (const [index, device] of answer.devices.entries()) this.#read(index, device, answer.driver)
    this.#places.length = answer.devices.length
    for (const [key, { round }] of this.#counters)
      if (round < this.#round - mostMissed) this.#counters.delete(key)
    return this.#points.metrics()
  }

  /** Metrics of each process that uses a GPU, from the last answer passed to `host`. */
  processes(answer: NvmlAnswer): Map<number, Metric[]> {
    return processMetrics(answer.devices, this.#places, () => new GpuPoints(this.#bootUs, this.#timeUs))
  }

  #read(index: number, device: NvmlDevice, driver: string): void {
    const place = this.#place(index, device, driver)
    if (place === undefined) return
    this.#points.add('hw.status', place, device.status === 0 ? 1 : 0, states.ok)
    this.#points.add('hw.status', place, device.status === 0 ? 0 : 1, states.failed)
    const { values } = device
    this.#addUse(place, values)
    this.#addMemory(place, values.memoryUsed, values.memoryTotal)
    this.#addState(place, values)
    this.#addPcie(place, values)
    this.#addErrors(place, values)
    for (const instance of device.instances)
      this.#addMemory(place.instance(instance), instance.memoryUsed, instance.memoryTotal)
  }

  /** A lost GPU may have no properties; undefined if it never had any. */
  #place(index: number, device: NvmlDevice, driver: string): GpuPlace | undefined {
    const names = [device.uuid, device.name, device.serial, driver].join('\0')
    if (device.uuid !== '' && names !== this.#names[index]) {
      this.#names[index] = names
      this.#places[index] = GpuPlace.of(index, device, driver)
    }
    return this.#places[index]
  }

  #addUse(place: GpuPlace, values: NvmlValues): void {
    this.#points.add('hw.gpu.utilization', place, fraction(values.utilization), tasks.general)
    this.#points.add('hw.gpu.utilization', place, fraction(values.encoder), tasks.encoder)
    this.#points.add('hw.gpu.utilization', place, fraction(values.decoder), tasks.decoder)
    this.#points.add('svc.gpu.memory.busy', place, fraction(values.memoryBusy))
  }

  #addMemory(place: GpuPlace, used: number | undefined, total: number | undefined): void {
    this.#points.add('hw.gpu.memory.usage', place, used)
    this.#points.add('hw.gpu.memory.limit', place, total)
    if (used === undefined || total === undefined || total <= 0) return
    this.#points.add('hw.gpu.memory.utilization', place, used / total)
  }

  #addState(place: GpuPlace, values: NvmlValues): void {
    this.#points.add('hw.temperature', place, values.temperature, locations.gpu)
    this.#points.add('hw.power', place, over(values.powerMw, 1000))
    this.#count('hw.energy', place, over(values.energyMj, 1000))
    this.#points.add('hw.fan.speed_ratio', place, over(values.fanSpeed, 100))
    const speed = 'svc.gpu.clock.frequency'
    this.#points.add(speed, place, times(values.graphicsMhz, 1e6), clocks.graphics)
    this.#points.add(speed, place, times(values.smMhz, 1e6), clocks.sm)
    this.#points.add(speed, place, times(values.memoryMhz, 1e6), clocks.memory)
    this.#points.add(speed, place, times(values.videoMhz, 1e6), clocks.video)
    const { clockReasons } = values
    if (clockReasons === undefined) return
    for (const [bit, reason] of throttleBits)
      this.#points.add('svc.gpu.throttled', place, (clockReasons & bit) === 0 ? 0 : 1, reason)
  }

  #addPcie(place: GpuPlace, values: NvmlValues): void {
    this.#points.add('svc.gpu.pcie.link.generation', place, values.linkGeneration)
    this.#points.add('svc.gpu.pcie.link.width', place, values.linkWidth)
    this.#count('hw.gpu.io', place, values.pcieReceivedBytes, directions.receive)
    this.#count('hw.gpu.io', place, values.pcieSentBytes, directions.transmit)
    this.#points.add(
      'svc.gpu.pcie.throughput',
      place,
      times(values.pcieReceivedKbps, 1000),
      directions.receive,
    )
    this.#points.add('svc.gpu.pcie.throughput', place, times(values.pcieSentKbps, 1000), directions.transmit)
  }

  #addErrors(place: GpuPlace, values: NvmlValues): void {
    this.#count('hw.errors', place, values.correctedSinceLoad, errors.corrected)
    this.#count('hw.errors', place, values.uncorrectedSinceLoad, errors.uncorrected)
    this.#points.add('svc.gpu.errors.lifetime', place, values.correctedEver, errors.corrected)
    this.#points.add('svc.gpu.errors.lifetime', place, values.uncorrectedEver, errors.uncorrected)
  }

  /** A counter that decreased was reset after it was last seen. */
  #count(name: GpuMetricName, place: GpuPlace, value: number | undefined, extra?: Extra): void {
    if (value === undefined) return
    const key = `${name}\0${place.id}\0${extra?.value}`
    let counted = this.#counters.get(key)
    if (counted === undefined) {
      counted = { startUs: this.#bootUs, timeUs: 0, value: 0, round: 0 }
      this.#counters.set(key, counted)
    }
    if (value < counted.value) counted.startUs = counted.timeUs
    counted.timeUs = this.#timeUs
    counted.value = value
    counted.round = this.#round
    this.#points.add(name, place, value, extra, counted.startUs)
  }
}

function times(value: number | undefined, factor: number): number | undefined {
  return value === undefined ? undefined : value * factor
}

function over(value: number | undefined, divisor: number): number | undefined {
  return value === undefined ? undefined : value / divisor
}
