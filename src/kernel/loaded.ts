// What this process has in the kernel: the programs and maps of all loaded objects. The single source for everything
// that shows them.

import { Turn } from '../foundation/lib/turn.ts'
import type { MapEntries } from './map-entries.ts'
import type { ProgramSpec } from './native.ts'

/** A program of an object. */
export interface ProgramState extends ProgramSpec {
  /** Name of its object. */
  readonly object: string
  /** 0 if it was omitted from the load. */
  readonly id: number
  /** Nanoseconds of all runs, and their number; 0 unless the kernel measures them (`statsEnable`). */
  readonly runTimeNs: number
  readonly runCount: number
  readonly attached: boolean
  /** Number of attachments: one, or one for each CPU or library. */
  readonly links: number
  /** Why it was omitted from the load. */
  readonly refused: string | undefined
}

/** A map of an object. */
export interface LoadedMap {
  /** As libbpf names it; several objects may use the same name. */
  readonly name: string
  readonly object: string
  readonly type: string
  readonly id: number
  readonly maxEntries: number
}

export interface MapState extends LoadedMap {
  /** Recently counted; arrays count as full, and socket and task storage shows none. */
  readonly entries: number
}

/** An object that is in the kernel. */
export interface LoadedObject {
  readonly name: string
  programs(): readonly ProgramState[]
  maps(): readonly { readonly map: LoadedMap; readonly entries: MapEntries }[]
}

const objects = new Set<LoadedObject>()

export function noteLoaded(object: LoadedObject): void {
  objects.add(object)
}

export function noteClosed(object: LoadedObject): void {
  objects.delete(object)
}

/** Programs in the kernel, of one object or of all. */
export function loadedPrograms(object?: string): ProgramState[] {
  return programs(object).filter(({ id }) => id !== 0)
}

/** Programs that the kernel rejected, and that their objects work without. */
export function refusedPrograms(object?: string): ProgramState[] {
  return programs(object).filter(({ refused }) => refused !== undefined)
}

function programs(object: string | undefined): ProgramState[] {
  return [...objects].flatMap(each => (object === undefined || each.name === object ? each.programs() : []))
}

/** Maps in the kernel. A shared map is listed with its first object. */
export function loadedMaps(): LoadedMap[] {
  return distinctMaps().map(({ map }) => map)
}

/** The same with their entries, as counted so far. */
export function countedMaps(): MapState[] {
  const maps = distinctMaps()
  for (const { entries } of maps) if (entries.isStale && !waiting.includes(entries)) waiting.push(entries)
  countNow()
  return maps.map(({ map, entries }) => ({ ...map, entries: entries.count }))
}

function distinctMaps(): { readonly map: LoadedMap; readonly entries: MapEntries }[] {
  const byId = new Map<number, { readonly map: LoadedMap; readonly entries: MapEntries }>()
  for (const object of objects)
    for (const each of object.maps()) if (!byId.has(each.map.id)) byId.set(each.map.id, each)
  return [...byId.values()]
}

/** How long counting may block the caller, and other work in later turns. */
const atOnceMs = 4
/** Maps to be counted. */
const waiting: MapEntries[] = []
let counting: Generator<void> | undefined
let goesOn = false

function* countEach(): Generator<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) yield* next.counts()
}

/** Counts for a short time; the rest continues automatically in later turns. */
function countNow(): void {
  counting ??= countEach()
  if (countSome(new Turn(atOnceMs)) && !goesOn) void countOn()
}

async function countOn(): Promise<void> {
  goesOn = true
  const turn = new Turn(atOnceMs)
  do await turn.next()
  while (countSome(turn))
  goesOn = false
}

/** False: all are counted. */
function countSome(turn: Turn): boolean {
  while (counting !== undefined && !turn.isOver) if (counting.next().done) counting = undefined
  return counting !== undefined
}
