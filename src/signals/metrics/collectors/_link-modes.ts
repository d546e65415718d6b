import { bytesPerMegabit } from './_link-properties.ts'
import { type Family, gauge, type Readings } from './collector.ts'

const device = ['device']
const speed = { labels: ['device', 'duplex', 'mode'], unit: 'By/s' }

/** Link modes that a network device supports or advertises, as a bit set. */
interface Side {
  readonly speeds: Family
  readonly ports: Family | undefined
  readonly autonegotiate: Family
  readonly pause: Family
  readonly asymmetricPause: Family
}

const whether = (what: string) => `Whether a network device ${what} (1), or not (0).`

export const supported: Side = {
  speeds: gauge(
    'network_supported_speed_bytes',
    'Speeds that a network device supports, in bytes per second.',
    speed,
  ),
  ports: gauge(
    'network_supported_port_info',
    'Types of ports that a network device supports. The value is 1.',
    {
      labels: ['device', 'type'],
    },
  ),
  autonegotiate: gauge('network_autonegotiate_supported', whether('can negotiate its link mode'), {
    labels: device,
  }),
  pause: gauge('network_pause_supported', whether('supports pause frames'), { labels: device }),
  asymmetricPause: gauge('network_asymmetricpause_supported', whether('supports asymmetric pause frames'), {
    labels: device,
  }),
}

export const advertised: Side = {
  speeds: gauge(
    'network_advertised_speed_bytes',
    'Speeds that a network device offers, in bytes per second.',
    speed,
  ),
  ports: undefined,
  autonegotiate: gauge('network_autonegotiate_advertised', whether('offers to negotiate its link mode'), {
    labels: device,
  }),
  pause: gauge('network_pause_advertised', whether('offers pause frames'), { labels: device }),
  asymmetricPause: gauge('network_asymmetricpause_advertised', whether('offers asymmetric pause frames'), {
    labels: device,
  }),
}

export const autonegotiate = gauge('network_autonegotiate', whether('negotiates its link mode'), {
  labels: device,
})

export const linkModeFamilies: readonly Family[] = [
  ...Object.values(supported),
  ...Object.values(advertised),
  autonegotiate,
].filter(family => family !== undefined)

/** `enum ethtool_link_mode_bit_indices`, the 32 bits of SIOCETHTOOL's first command (linux/ethtool.h). */
const bit = { autonegotiate: 6, pause: 13, asymmetricPause: 14 } as const
const ports: readonly (readonly [bit: number, type: string])[] = [
  [7, 'TP'],
  [8, 'AUI'],
  [9, 'MII'],
  [10, 'FIBRE'],
  [11, 'BNC'],
  [16, 'Backplane'],
]
const speeds: readonly (readonly [bit: number, megabits: number, medium: string, duplex?: 'half'])[] = [
  [0, 10, 'T', 'half'],
  [1, 10, 'T'],
  [2, 100, 'T', 'half'],
  [3, 100, 'T'],
  [4, 1000, 'T', 'half'],
  [5, 1000, 'T'],
  [12, 10_000, 'T'],
  [17, 1000, 'KX'],
  [18, 10_000, 'KX4'],
  [19, 10_000, 'KR'],
  [20, 10_000, 'R_FEC'],
  [21, 20_000, 'MLD2'],
  [22, 20_000, 'KR2'],
  [23, 40_000, 'KR4'],
  [24, 40_000, 'CR4'],
  [25, 40_000, 'SR4'],
  [26, 40_000, 'LR4'],
  [27, 56_000, 'KR4'],
  [28, 56_000, 'CR4'],
  [29, 56_000, 'SR4'],
  [30, 56_000, 'LR4'],
  [31, 25_000, 'CR'],
]

/** Shows the modes of a bit set. */
export function showModes(readings: Readings, side: Side, name: string, modes: number): void {
  const has = (which: number): boolean => ((modes >>> which) & 1) === 1
  for (const [which, megabits, medium, duplex = 'full'] of speeds)
    if (has(which))
      readings.set(side.speeds, megabits * bytesPerMegabit, name, duplex, `${megabits}base${medium}`)
  if (side.ports !== undefined)
    for (const [which, type] of ports) if (has(which)) readings.set(side.ports, 1, name, type)
  readings.set(side.autonegotiate, has(bit.autonegotiate) ? 1 : 0, name)
  readings.set(side.pause, has(bit.pause) ? 1 : 0, name)
  readings.set(side.asymmetricPause, has(bit.asymmetricPause) ? 1 : 0, name)
}
