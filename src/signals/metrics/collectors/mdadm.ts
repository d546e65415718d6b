import { numberAt, textAt } from './_small-file.ts'
import { collector, gauge, NoData, type Readings, type Tree } from './collector.ts'

const labels = ['device']
const state = gauge('md_state', 'State of a RAID array: 1 for the one it is in, 0 for others.', {
  labels: ['device', 'state'],
})
const disks = gauge('md_disks', 'Disks of a RAID array by state.', { labels: ['device', 'state'] })
const disksRequired = gauge('md_disks_required', 'Disks that a RAID array needs to be whole.', { labels })
const blocks = gauge('md_blocks', 'Size of a RAID array in blocks of 1 KiB.', {
  labels,
  unit: 'KiBy',
  otel: {
    name: 'system.disk.limit',
    unit: 'By',
    kind: 'updowncounter',
    attributes: { device: 'system.device' },
    scale: 1024,
  },
})
const blocksSynced = gauge(
  'md_blocks_synced',
  'Blocks of 1 KiB that a running synchronisation is through with; all of them where none runs.',
  { labels, unit: 'KiBy' },
)
const raidDisks = gauge('md_raid_disks', 'Disks of a RAID array that is whole, as its settings tell.', {
  labels,
})
const degraded = gauge('md_degraded', 'Disks that a RAID array lacks.', { labels })

const states = ['active', 'inactive', 'recovering', 'resync', 'check']
const redundantLevels = new Set(['raid1', 'raid4', 'raid5', 'raid6', 'raid10'])

interface MdArray {
  readonly name: string
  readonly state: string
  readonly active: number
  readonly failed: number
  readonly spare: number
  readonly required: number
  readonly blocks: number
  readonly synced: number
}

/** Arrays of Linux software RAID, from /proc/mdstat and /sys/block/md*. */
export const mdadm = collector({
  name: 'mdadm',
  summary: 'State of software RAID arrays',
  source: '/proc/mdstat',
  enabledByDefault: true,
  metrics: [state, disks, disksRequired, blocks, blocksSynced, raidDisks, degraded],
  start: (_options, { host: { proc, sys } }) => ({
    collect(readings) {
      if (!proc.exists('mdstat')) throw new NoData('/proc/mdstat not found: the kernel has no software RAID')
      for (const array of parseMdstat(proc.text('mdstat'))) showArray(array, readings)
      for (const name of sys.list('block')) if (name.startsWith('md')) showSettings(sys, name, readings)
    },
  }),
})

function showArray(array: MdArray, readings: Readings): void {
  const { name } = array
  for (const each of states) readings.set(state, each === array.state ? 1 : 0, name, each)
  readings.set(disks, array.active, name, 'active')
  readings.set(disks, array.failed, name, 'failed')
  readings.set(disks, array.spare, name, 'spare')
  readings.set(disksRequired, array.required, name)
  readings.set(blocks, array.blocks, name)
  readings.set(blocksSynced, array.synced, name)
}

function showSettings(sys: Tree, name: string, readings: Readings): void {
  const path = `block/${name}/md`
  if (!sys.exists(path)) return
  // During a reshape the number before it follows in parentheses.
  readings.set(raidDisks, numberAt(sys, `${path}/raid_disks`), name)
  const redundant = redundantLevels.has(textAt(sys, `${path}/level`))
  readings.set(degraded, redundant ? numberAt(sys, `${path}/degraded`) : 0, name)
}

/** Arrays of /proc/mdstat: a line with name and disks, one with blocks, and one with the current activity. */
export function parseMdstat(text: string): readonly MdArray[] {
  if (!text.startsWith('Personalities')) throw new Error('cannot read /proc/mdstat: no personalities')
  const lines = text.split('\n')
  const arrays: MdArray[] = []
  for (const [i, line] of lines.entries()) {
    if (!/^\S/.test(line) || /^(Personalities|unused)/.test(line)) continue
    const [name = '', , listed] = line.split(/\s+/, 3)
    const status = lines[i + 1] ?? ''
    const size = /^\s*(\d+)(?!\S)/.exec(status)?.[1]
    if (listed === undefined || size === undefined || lines.length <= i + 3)
      throw new Error(`cannot read /proc/mdstat: the entry of ${name.slice(0, 64)} is incomplete`)
    const progress = lines[i + 2]!.includes('bitmap') ? lines[i + 3]! : lines[i + 2]!
    arrays.push({
      name,
      state: activityOf(progress) ?? listed,
      ...diskCounts(line, status),
      failed: count(line, '(F)'),
      spare: count(line, '(S)'),
      blocks: Number(size),
      synced: activityOf(progress) === undefined ? Number(size) : syncedBlocks(progress, name),
    })
  }
  return arrays
}

/** Activity of an array; undefined for none. */
function activityOf(line: string): string | undefined {
  if (line.includes('recovery')) return 'recovering'
  if (line.includes('reshape')) return 'reshaping'
  if (line.includes('check')) return 'check'
  return line.includes('resync') ? 'resync' : undefined
}

function syncedBlocks(line: string, name: string): number {
  if (/PENDING|DELAYED|REMOTE/.test(line)) return 0
  const done = /\((\d+)\/\d+\)/.exec(line)?.[1]
  if (done === undefined) throw new Error(`cannot read /proc/mdstat: no progress of ${name}`)
  return Number(done)
}

function diskCounts(line: string, status: string): { readonly active: number; readonly required: number } {
  // Arrays without redundancy have no such counts: each disk in the line has its number in brackets.
  if (/raid0|linear/.test(line)) return { active: count(line, '['), required: count(line, '[') }
  if (line.includes('inactive')) return { active: 0, required: 0 }
  const found = /\[(\d+)\/(\d+)\] \[[U_]+\]/.exec(status)
  if (!found) throw new Error(`cannot read /proc/mdstat: no number of disks in ${status.trim().slice(0, 64)}`)
  return { required: Number(found[1]), active: Number(found[2]) }
}

function count(text: string, part: string): number {
  return text.split(part).length - 1
}
