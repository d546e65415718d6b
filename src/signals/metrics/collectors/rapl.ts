import { Scanner } from '../../../foundation/lib/scanner.ts'
import type { FamilyOptions } from '../../../foundation/model/collector.ts'
import { boolean } from '../../../foundation/schema/kinds.ts'
import { key } from '../../../foundation/schema/tree.ts'
import { collector, counter, NoData, type Tree } from './collector.ts'
import { families } from './families.ts'

const anyZone = counter('rapl_joules_total', 'Energy that a power zone has used.', {
  labels: ['index', 'path', 'rapl_zone'],
})

/** Zones that are a whole component; others are parts of these, or of the host. */
const components: Readonly<Record<string, string>> = { package: 'cpu', dram: 'memory' }

function convention(zone: string): FamilyOptions {
  const type = components[zone]
  if (type === undefined) return {}
  const attributes = { path: 'hw.id' }
  return {
    otel: { name: 'hw.energy', unit: 'J', kind: 'counter', attributes, constant: { 'hw.type': type } },
  }
}

interface Zone {
  readonly name: string
  /** Number among zones of the same name. */
  readonly index: string
  /** Shown path of the directory. */
  readonly path: string
  readonly energyPath: string
}

/** Energy by zone of the processor, from /sys/class/powercap (Documentation/power/powercap/powercap.rst). */
export const rapl = collector({
  name: 'rapl',
  summary: 'Energy used by CPUs and memory',
  source: '/sys/class/powercap',
  enabledByDefault: true,
  metrics: [anyZone],
  dynamic: 'Unless `enable_zone_label` is on: one metric for each name of a zone.',
  options: {
    enable_zone_label: key(boolean, false, 'Gives the zone as a label instead of in the metric’s name.'),
  },
  start({ enable_zone_label }, { host: { sys } }) {
    const byZone = families(zone =>
      counter(
        `rapl_${`${zone}_joules_total`.replace(/_*[^0-9A-Za-z_]+_*/g, '_')}`,
        `Energy that power zones of the name ${zone} have used.`,
        { labels: ['index', 'path'], ...convention(zone) },
      ),
    )
    const scan = new Scanner(Buffer.alloc(0))
    let zones: readonly Zone[] = []
    let known = ''
    return {
      collect(readings) {
        const directories = sys.list('class/powercap')
        if (directories.length === 0 && !sys.exists('class/powercap'))
          throw new NoData(`${sys.at('class/powercap')} not found: the kernel does not measure power`)
        const names = directories.join('\n')
        if (names !== known) {
          zones = findZones(sys, directories)
          known = names
        }
        for (const { name, index, path, energyPath } of zones) {
          const joules = readMicrojoules(sys, energyPath, scan) / 1e6
          if (enable_zone_label) readings.set(anyZone, joules, index, path, name)
          else readings.set(byZone(name)!, joules, index, path)
        }
      },
    }
  },
})

/** Zones are the directories with a name; others belong to the control types themselves. */
function findZones(sys: Tree, directories: readonly string[]): Zone[] {
  const zones: Zone[] = []
  const counts = new Map<string, number>()
  for (const directory of directories) {
    const path = `class/powercap/${directory}`
    const full = sys.find(`${path}/name`)
    if (full === undefined) continue
    if (full.length > 64) throw new Error(`cannot read ${sys.at(path)}/name: too long`)
    // Packages have their number in the name; other zones may share a name.
    const [, stem, number] = /^([^-]*)-([-+]?\d+)$/.exec(full) ?? []
    const name = stem ?? full
    const index = number === undefined ? (counts.get(name) ?? 0) : Number(number)
    counts.set(name, index + 1)
    zones.push({ name, index: String(index), path: sys.at(path), energyPath: `${path}/energy_uj` })
  }
  return zones
}

function readMicrojoules(sys: Tree, path: string, scan: Scanner): number {
  let bytes: Buffer
  try {
    bytes = sys.bytes(path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new NoData(`no permission to read ${sys.at(path)}; run svc as root`)
    throw error
  }
  scan.reset(bytes).line()
  const value = scan.number()
  if (!(value >= 0) || !scan.done) throw new Error(`cannot read ${sys.at(path)}: no number`)
  return value
}
