import { chipName } from './_chip-name.ts'
import { collector, type Family, gauge, type Tree } from './collector.ts'

const labels = ['card']
const attributes = { card: 'hw.id' }
const infoHelp = 'What a graphics card is. The value is 1.'
const withChip = gauge('drm_card_info', infoHelp, {
  labels: ['card', 'chip', 'memory_vendor', 'power_performance_level', 'unique_id', 'vendor'],
})
const withoutChip = gauge('drm_card_info', infoHelp, {
  labels: ['card', 'memory_vendor', 'power_performance_level', 'unique_id', 'vendor'],
})

/** By attribute of the device (Documentation/gpu/amdgpu/driver-misc.rst). */
const numbers: readonly (readonly [attribute: string, family: Family])[] = [
  [
    'gpu_busy_percent',
    gauge('drm_gpu_busy_percent', 'Share of time in which the GPU is busy.', {
      labels,
      otel: {
        name: 'hw.gpu.utilization',
        unit: '1',
        kind: 'gauge',
        attributes,
        constant: { 'hw.gpu.task': 'general' },
        scale: 0.01,
      },
    }),
  ],
  [
    'mem_info_gtt_total',
    gauge('drm_memory_gtt_size_bytes', 'System memory that the GPU may address through its table.', {
      labels,
    }),
  ],
  [
    'mem_info_gtt_used',
    gauge('drm_memory_gtt_used_bytes', 'System memory that the GPU uses through its table.', { labels }),
  ],
  [
    'mem_info_vis_vram_total',
    gauge('drm_memory_vis_vram_size_bytes', 'Video memory that the processor can reach.', { labels }),
  ],
  [
    'mem_info_vis_vram_used',
    gauge('drm_memory_vis_vram_used_bytes', "Video memory within the processor's reach that is used.", {
      labels,
    }),
  ],
  [
    'mem_info_vram_total',
    gauge('drm_memory_vram_size_bytes', 'Video memory of the card.', {
      labels,
      otel: { name: 'hw.gpu.memory.limit', unit: 'By', kind: 'updowncounter', attributes },
    }),
  ],
  [
    'mem_info_vram_used',
    gauge('drm_memory_vram_used_bytes', 'Video memory of the card that is used.', {
      labels,
      otel: { name: 'hw.gpu.memory.usage', unit: 'By', kind: 'updowncounter', attributes },
    }),
  ],
]

/** Graphics cards with the driver amdgpu, from /sys/class/drm. */
export const drm = collector({
  name: 'drm',
  summary: 'Load and memory of graphics cards with the driver amdgpu',
  source: '/sys/class/drm',
  enabledByDefault: false,
  metrics: [withChip, withoutChip, ...numbers.map(([, family]) => family)],
  start: (_options, { host: { sys } }) => ({
    collect(readings) {
      for (const card of sys.list('class/drm')) {
        if (!/^card\d$/.test(card)) continue
        const device = `class/drm/${card}/device`
        if (!hasDriver(sys, device)) continue
        const text = (attribute: string) => (sys.find(`${device}/${attribute}`) ?? '').slice(0, 128)
        const memory = text('mem_info_vram_vendor')
        const level = text('power_dpm_force_performance_level')
        const id = text('unique_id')
        const path = sys.real(device)
        const chip = path === undefined ? '' : chipName(path)
        if (chip === '') readings.setAll(withoutChip, 1, [card, memory, level, id, 'amd'])
        else readings.setAll(withChip, 1, [card, chip, memory, level, id, 'amd'])
        for (const [attribute, family] of numbers) {
          const value = text(attribute) || '0'
          if (!/^\d{1,20}$/.test(value))
            throw new Error(`cannot read ${sys.at(device)}/${attribute}: no number`)
          readings.set(family, Number(value), card)
        }
      }
    },
  }),
})

/** Whether the driver is amdgpu. Throws if the driver is unknown. */
function hasDriver(sys: Tree, device: string): boolean {
  try {
    return sys.text(`${device}/uevent`).includes('DRIVER=amdgpu')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENODATA') return false
    throw error
  }
}
