import type { Extra } from './gpu-place.ts'

/** A GPU metric, for code and documentation. */
export interface GpuMetric {
  readonly kind: 'gauge' | 'counter' | 'updowncounter'
  /** UCUM unit. */
  readonly unit: string
  readonly description: string
  /** Attribute besides those of the GPU, by its values. */
  readonly extras: Readonly<Record<string, Extra>>
  /** Source of its value (NVML API Reference Guide). */
  readonly source: string
}

function extras<K extends string>(key: string, values: readonly K[]): Readonly<Record<K, Extra>> {
  const entries = values.map((value): [string, Extra] => [value, { key, value }])
  return Object.fromEntries(entries) as Record<K, Extra>
}

export const tasks = extras('hw.gpu.task', ['general', 'encoder', 'decoder'])
export const directions = extras('network.io.direction', ['receive', 'transmit'])
export const errors = extras('error.type', ['corrected', 'uncorrected'])
export const states = extras('hw.state', ['ok', 'failed'])
export const locations = extras('hw.sensor_location', ['gpu'])
export const clocks = extras('svc.gpu.clock.domain', ['graphics', 'sm', 'memory', 'video'])
const throttles = extras('svc.gpu.throttle.reason', [
  'sw_power_cap',
  'hw_slowdown',
  'sync_boost',
  'sw_thermal',
  'hw_thermal',
  'hw_power_brake',
])

/** Reasons why a GPU runs below the requested clock: bits of `nvmlClocksEventReasons`. */
export const throttleBits: readonly (readonly [bit: number, reason: Extra])[] = [
  [0x04, throttles.sw_power_cap],
  [0x08, throttles.hw_slowdown],
  [0x10, throttles.sync_boost],
  [0x20, throttles.sw_thermal],
  [0x40, throttles.hw_thermal],
  [0x80, throttles.hw_power_brake],
]

/**
 * All GPU metrics by name: those of the semantic conventions for hardware (1.44), and svc's own for the rest. Values
 * that a GPU or its driver does not report are omitted.
 */
export const gpuMetrics = {
  'hw.gpu.utilization': {
    kind: 'gauge',
    unit: '1',
    description: 'Fraction of time spent in a specific task.',
    extras: tasks,
    source: 'nvmlDeviceGetUtilizationRates, nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization',
  },
  'hw.gpu.memory.usage': {
    kind: 'updowncounter',
    unit: 'By',
    description: 'GPU memory used.',
    extras: {},
    source: 'nvmlDeviceGetMemoryInfo_v2',
  },
  'hw.gpu.memory.limit': {
    kind: 'updowncounter',
    unit: 'By',
    description: 'Size of the GPU memory.',
    extras: {},
    source: 'nvmlDeviceGetMemoryInfo_v2',
  },
  'hw.gpu.memory.utilization': {
    kind: 'gauge',
    unit: '1',
    description: 'Fraction of GPU memory used.',
    extras: {},
    source: 'nvmlDeviceGetMemoryInfo_v2',
  },
  'hw.gpu.io': {
    kind: 'counter',
    unit: 'By',
    description: 'Bytes received and transmitted by the GPU, if the driver has 64-bit counters.',
    extras: directions,
    source: 'nvmlDeviceGetFieldValues',
  },
  'hw.errors': {
    kind: 'counter',
    unit: '{error}',
    description: 'Memory errors (ECC) since the driver was loaded.',
    extras: errors,
    source: 'nvmlDeviceGetTotalEccErrors, volatile',
  },
  'hw.temperature': {
    kind: 'gauge',
    unit: 'Cel',
    description: 'Temperature of the GPU.',
    extras: locations,
    source: 'nvmlDeviceGetTemperature',
  },
  'hw.power': {
    kind: 'gauge',
    unit: 'W',
    description: 'Instantaneous power consumed by the GPU.',
    extras: {},
    source: 'nvmlDeviceGetPowerUsage',
  },
  'hw.energy': {
    kind: 'counter',
    unit: 'J',
    description: 'Energy consumed by the GPU since the driver was loaded.',
    extras: {},
    source: 'nvmlDeviceGetTotalEnergyConsumption',
  },
  'hw.fan.speed_ratio': {
    kind: 'gauge',
    unit: '1',
    description: 'Fan speed as a fraction of its maximum speed.',
    extras: {},
    source: 'nvmlDeviceGetFanSpeed',
  },
  'hw.status': {
    kind: 'updowncounter',
    unit: '1',
    description: 'Whether the GPU responds.',
    extras: states,
    source: 'NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED',
  },
  'svc.gpu.memory.busy': {
    kind: 'gauge',
    unit: '1',
    description: 'Fraction of time in which GPU memory was read or written.',
    extras: {},
    source: 'nvmlDeviceGetUtilizationRates',
  },
  'svc.gpu.clock.frequency': {
    kind: 'gauge',
    unit: 'Hz',
    description: 'Current clocks of the GPU.',
    extras: clocks,
    source: 'nvmlDeviceGetClockInfo',
  },
  'svc.gpu.throttled': {
    kind: 'gauge',
    unit: '1',
    description: 'Whether this reason keeps the GPU below its requested clock, 1 or 0.',
    extras: throttles,
    source: 'nvmlDeviceGetCurrentClocksEventReasons',
  },
  'svc.gpu.pcie.link.generation': {
    kind: 'gauge',
    unit: '1',
    description: 'Current PCIe generation of the link.',
    extras: {},
    source: 'nvmlDeviceGetCurrPcieLinkGeneration',
  },
  'svc.gpu.pcie.link.width': {
    kind: 'gauge',
    unit: '{lane}',
    description: 'Current number of PCIe lanes of the link.',
    extras: {},
    source: 'nvmlDeviceGetCurrPcieLinkWidth',
  },
  'svc.gpu.pcie.throughput': {
    kind: 'gauge',
    unit: 'By/s',
    description: 'Bytes over PCIe in 20 ms, if the driver has no 64-bit counters.',
    extras: directions,
    source: 'nvmlDeviceGetPcieThroughput',
  },
  'svc.gpu.errors.lifetime': {
    kind: 'gauge',
    unit: '{error}',
    description: 'Memory errors (ECC) over the lifetime of the GPU, as counted by the GPU.',
    extras: errors,
    source: 'nvmlDeviceGetTotalEccErrors, aggregate',
  },
  'svc.gpu.process.memory.usage': {
    kind: 'updowncounter',
    unit: 'By',
    description: 'GPU memory that the process uses.',
    extras: {},
    source: 'nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3',
  },
  'svc.gpu.process.utilization': {
    kind: 'gauge',
    unit: '1',
    description: 'Fraction of time in which the process used this part of the GPU.',
    extras: tasks,
    source: 'nvmlDeviceGetProcessUtilization',
  },
  'svc.gpu.process.memory.busy': {
    kind: 'gauge',
    unit: '1',
    description: 'Fraction of time in which the process read or wrote GPU memory.',
    extras: {},
    source: 'nvmlDeviceGetProcessUtilization',
  },
} as const satisfies Readonly<Record<string, GpuMetric>>

export type GpuMetricName = keyof typeof gpuMetrics
