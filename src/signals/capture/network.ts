import { counted } from '../../foundation/lib/small-tables.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import { connectBounds, NetworkPair, rttBounds } from '../../foundation/model/network-pair.ts'
import type { BpfObject } from '../../kernel/bpf-object.ts'
import { bss, rodata, svcNetKey, svcNetPair, svcNetSide } from '../../kernel/gen/net.ts'
import { readIterator, runIterator } from '../../kernel/iterator.ts'
import { beginLoad } from '../../kernel/load-ahead.ts'
import { loadObject, newFile } from '../../kernel/load-object.ts'
import {
  batchCursor,
  batchDone,
  type LinkHandle,
  type MapHandle,
  type Native,
  type ObjectHandle,
} from '../../kernel/native.ts'
import { setOwnerSeeds } from '../../kernel/owner-seeds.ts'
import { RecordTexts } from './record-texts.ts'

const programs = ['svc_net_state', 'svc_net_destroy', 'svc_net_reset_received', 'svc_net_reset_sent'] as const
const server = svcNetSide.indexOf('server')
const mostPairs = 16_384
/** Small, as each entry may require a lookup of its process. */
const batchEntries = 64
/** Milliseconds of work before yielding. */
const workMs = 5
/** Unchanged looks after which a pair without connections is removed. */
const idleLooks = 4
/** Scanning the files of all processes takes at most 1 % of the time; each takes some microseconds. */
const restShare = 100
const numbers = svcNetPair.comm / 8
/** Position of the group's number in an owner's number (OWNER_BITS in bpf/include/owner.h). */
const ownerBits = Math.log2(bss.ownerPairsSize / bss.groupPairsSize)
const twoTo32 = 4294967296

/** A pair, identified by the bytes of its key. */
interface Known {
  /** Numbers of `svc_net_pair` at the last look. */
  readonly seen: Float64Array
  idle: number
  look: number
}

/** Memory of a pair: its key and its numbers. */
const knownBytes = 720

/** Begins to load the programs of a `NetworkProbe`. */
export function beginNetwork(native: Native): void {
  beginLoad(native, newFile('net'), { name: 'net', prepare: handle => prepare(native, handle, mostPairs) })
}

/** Losses of the kernel side. */
export interface NetworkCounters {
  /** Events counted without their pair, because the owner had its share of the 16,384 entries. */
  readonly overflowed: number
  /** Connections that are not counted, because the kernel had no memory for their state. */
  readonly storage_full: number
}

/**
 * TCP connections counted in the kernel by process and peer (bpf/net.bpf.c). No cost per packet or call; opening and
 * closing a connection cost about a microsecond together.
 */
export class NetworkProbe {
  readonly #native: Native
  readonly #object: BpfObject
  readonly #files: LinkHandle
  readonly #pairs: MapHandle
  readonly #globals: DataView
  readonly #counts: Uint32Array
  readonly #known = new Map<string, Known>()
  readonly #texts = new RecordTexts()
  readonly #pair = new NetworkPair()
  readonly #keys = Buffer.alloc(batchEntries * svcNetKey.size)
  readonly #values: Buffer
  readonly #spare: Buffer
  #looks = 0
  #nextFilesMs = 0
  #closed = false

  /**
   * Loads and attaches. Throws if the kernel rejects the programs; nothing remains loaded then. `maxPairs`: at most the
   * size of the kernel's table.
   */
  constructor(native: Native, maxPairs = mostPairs) {
    this.#native = native
    counted(this)
    const { object } = loadObject(native, 'net', { prepare: handle => prepare(native, handle, maxPairs) })
    this.#object = object
    try {
      const globals = native.mapView(this.#object.map('.bss'))
      this.#globals = new DataView(globals)
      this.#counts = new Uint32Array(globals, 0, bss.size >> 2)
      this.#pairs = this.#object.map('pairs')
      this.#values = Buffer.alloc(batchEntries * this.#pairs.slotSize)
      this.#spare = Buffer.alloc(this.#pairs.slotSize)
      this.#files = this.#object.attach('svc_net_files')
      // The first pass identifies the agent and finds the listening ports; with these, the second finds the side of
      // existing connections.
      this.#lookAtFiles()
      for (const program of programs) this.#object.attach(program)
      this.#globals.setUint32(bss.watching, 1, true)
      this.#lookAtFiles()
    } catch (error) {
      this.#object.close()
      throw error
    }
  }

  /**
   * Delivers changes since the last call, pair by pair. `last`: includes open connections up to now, however long that
   * takes.
   */
  collect(take: (pair: NetworkPair) => void, last = false): void {
    if (this.#closed) return
    if (last) this.#lookAtFiles()
    this.#looks++
    for (const _ of this.#batches(take));
  }

  /** The same with yields; `collect` and `close` may be called in between. */
  async collectInTurns(take: (pair: NetworkPair) => void): Promise<void> {
    if (this.#closed) return
    if (performance.now() >= this.#nextFilesMs) await this.#runFiles()
    if (this.#closed) return
    this.#looks++
    const turn = new Turn(workMs)
    for (const _ of this.#batches(take)) {
      if (!turn.isOver) continue
      await turn.next()
      if (this.#closed) return
    }
  }

  /** Visits all pairs, and the overflow entry, in batches. */
  *#batches(take: (pair: NetworkPair) => void): Generator<void> {
    const keys = this.#keys
    const values = this.#values
    const pairs = this.#pairs
    const cursor = batchCursor(pairs)
    while (!batchDone(cursor)) {
      const n = this.#native.mapReadBatch(pairs, cursor, keys, values, false)
      for (let i = 0; i < n; i++) this.#look(keys, i * svcNetKey.size, values, i * pairs.slotSize, take)
      yield
    }
    const overflow = this.#object.map('overflow')
    this.#native.mapLookup(overflow, Buffer.alloc(4), values)
    this.#look(noKey, 0, values, 0, take)
  }

  counters(): NetworkCounters {
    const at = (offset: number) => Number(this.#globals.getBigUint64(offset, true))
    return { overflowed: at(bss.overflowed), storage_full: at(bss.storageFull) }
  }

  /** Detaches and unloads. Idempotent. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#object.close()
  }

  /** Memory of the known pairs, at most the size of the kernel's table. */
  get bytes(): number {
    return this.#known.size * knownBytes
  }

  /** Number of known pairs of a process. */
  sizeOf(pid: number): number {
    let pairs = 0
    for (const id of this.#known.keys()) if (keyOf(id).readUInt32LE(svcNetKey.pid) === pid) pairs++
    return pairs
  }

  #lookAtFiles(): void {
    const began = performance.now()
    readIterator(this.#native, this.#files, 0)
    this.#rested(began)
  }

  async #runFiles(): Promise<void> {
    const began = performance.now()
    await runIterator(this.#native, this.#files)
    this.#rested(began)
  }

  #rested(began: number): void {
    const now = performance.now()
    this.#nextFilesMs = now + (now - began) * restShare
  }

  #look(keys: Buffer, keyAt: number, values: Buffer, at: number, take: (pair: NetworkPair) => void): void {
    const id = keys.toString('latin1', keyAt, keyAt + svcNetKey.size)
    let known = this.#known.get(id)
    if (known === undefined) {
      known = { seen: new Float64Array(numbers), idle: 0, look: 0 }
      this.#known.set(id, known)
    }
    // A batch may repeat an element if the table changes concurrently.
    if (known.look === this.#looks) return
    known.look = this.#looks
    if (!this.#fill(known.seen, values, at)) {
      if (keys !== noKey) this.#rest(id, known)
      return
    }
    known.idle = 0
    this.#name(keys, keyAt, values, at)
    take(this.#pair)
  }

  /** Sets the pair to the differences since the last look. False: no change. */
  #fill(seen: Float64Array, values: Buffer, at: number): boolean {
    let changed = false
    const grown = (offset: number): number => {
      const total = i64(values, at + offset)
      const index = offset >> 3
      const change = total - seen[index]!
      if (change === 0) return 0
      seen[index] = total
      changed = true
      return change
    }
    const pair = this.#pair
    pair.opened = grown(svcNetPair.opened)
    pair.openChange = grown(svcNetPair.open)
    pair.sent = grown(svcNetPair.sent)
    pair.received = grown(svcNetPair.received)
    pair.retransmits = grown(svcNetPair.retransmits)
    pair.resetsSent = grown(svcNetPair.resetsSent)
    pair.resetsReceived = grown(svcNetPair.resetsReceived)
    pair.connectNs = grown(svcNetPair.connectNs)
    pair.rttUs = grown(svcNetPair.rttUs)
    const { connectBuckets, rttBuckets, failures } = pair
    for (let i = 0; i < connectBuckets.length; i++)
      connectBuckets[i] = grown(svcNetPair.connectBuckets + 8 * i)
    for (let i = 0; i < rttBuckets.length; i++) rttBuckets[i] = grown(svcNetPair.rttBuckets + 8 * i)
    for (let i = 0; i < failures.length; i++) failures[i] = grown(svcNetPair.failures + 8 * i)
    return changed
  }

  #name(keys: Buffer, keyAt: number, values: Buffer, at: number): void {
    const pair = this.#pair
    pair.overflow = keys === noKey
    pair.pid = keys.readUInt32LE(keyAt + svcNetKey.pid)
    pair.netns = keys.readUInt32LE(keyAt + svcNetKey.netns)
    pair.server = keys[keyAt + svcNetKey.side] === server
    pair.port = keys.readUInt16LE(keyAt + svcNetKey.port)
    pair.localAddress = pair.overflow ? '' : this.#texts.address(keys, keyAt + svcNetKey.localAddress)
    pair.peerAddress = pair.overflow ? '' : this.#texts.address(keys, keyAt + svcNetKey.peerAddress)
    pair.comm = this.#texts.text(values, at + svcNetPair.comm, svcNetPair.commSize)
  }

  /** Removes a pair without connections after some unchanged looks. */
  #rest(id: string, known: Known): void {
    if (known.seen[svcNetPair.open >> 3] !== 0 || ++known.idle < idleLooks) return
    // Reads it again: time has passed since the batch was read.
    const key = keyOf(id)
    if (this.#native.mapLookup(this.#pairs, key, this.#spare)) {
      for (let i = 0; i < numbers; i++) if (i64(this.#spare, 8 * i) !== known.seen[i]) return
      this.#native.mapDelete(this.#pairs, key)
      this.#release(this.#spare.readUInt32LE(svcNetPair.owner))
    }
    this.#known.delete(id)
  }

  /** Uncounts a deleted pair of an owner, atomically with the kernel's counting. */
  #release(owner: number): void {
    const counts = this.#counts
    for (const at of [bss.pairsUsed, bss.groupPairs + 4 * (owner >> ownerBits), bss.ownerPairs + 4 * owner])
      Atomics.sub(counts, at / 4, 1)
  }
}

function prepare(native: Native, object: ObjectHandle, maxPairs: number): void {
  const set = (offset: number, size: number, bounds: readonly number[], scale: number) => {
    if (bounds.length * 8 !== size)
      throw new RangeError(`the BPF program has ${size / 8} histogram bounds, not ${bounds.length}`)
    const scaled = BigUint64Array.from(bounds, bound => BigInt(Math.round(bound * scale)))
    native.objectSetData(object, '.rodata', offset, new Uint8Array(scaled.buffer))
  }
  set(rodata.connectBoundsNs, rodata.connectBoundsNsSize, connectBounds, 1e9)
  set(rodata.rttBoundsUs, rodata.rttBoundsUsSize, rttBounds, 1e6)
  setOwnerSeeds(native, object, rodata.ownerSeeds)
  native.objectSetData(object, '.rodata', rodata.pairsMax, new Uint8Array(Uint32Array.of(maxPairs).buffer))
}

/** Exact below 2^53, of either sign. */
function i64(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readInt32LE(at + 4) * twoTo32
}

/** Key of the overflow entry. */
const noKey = Buffer.alloc(svcNetKey.size)

function keyOf(id: string): Buffer {
  return Buffer.from(id, 'latin1')
}
