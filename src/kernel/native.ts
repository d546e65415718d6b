import { assetDirectories, findAsset } from './assets.ts'

/**
 * The native addon as exported by native/*.c: typed but not wrapped, so that a call costs only one call.
 *
 * Every function throws: a `TypeError` for invalid arguments, otherwise an `Error` "cannot <verb> <object>: <cause>"
 * with `code` (`EPERM`) and `errno`. Strings have 1 to 127 bytes. Buffers are `Uint8Array`s; a longer one than needed
 * is used from its start. Handles may be dropped: garbage collection releases their resources.
 */
export interface Native {
  /**
   * Opens a compiled object. Nothing is loaded into the kernel before `objectLoad`. The kernel truncates `name` to 15
   * bytes.
   */
  objectOpen(bytes: Uint8Array, name: string): ObjectHandle
  /** Detaches and unloads all of the object; may be called again. Open rings and views stay readable. */
  objectClose(object: ObjectHandle): void
  objectMaps(object: ObjectHandle): MapSpec[]
  objectPrograms(object: ObjectHandle): ProgramSpec[]
  /** Before the load. The size of a ring is rounded up to a power of two pages. */
  objectSetMaxEntries(object: ObjectHandle, map: string, entries: number): void
  /**
   * Before the load: replaces the map of this name by one of a loaded object, which lives as long as either object.
   * EINVAL: type, key size or value size differ.
   */
  objectReuseMap(object: ObjectHandle, name: string, map: MapHandle): void
  /** Before the load: sets bytes of a section of global data (`.rodata`, `.data`, `.bss`) at an offset. */
  objectSetData(object: ObjectHandle, section: string, offset: number, bytes: Uint8Array): void
  /** Before the load: excludes a program, or includes it again. */
  objectSetAutoload(object: ObjectHandle, program: string, on: boolean): void
  /** Begins a load on another thread, which `objectLoad` completes. Most other uses of the object wait for it. */
  objectLoadAhead(object: ObjectHandle): void
  /** Creates the maps and verifies the programs. After a failure only `objectClose` may follow. */
  objectLoad(object: ObjectHandle): LoadResult
  /** Attaches by the program's section. The object keeps the link, even if its handle is dropped. */
  objectAttach(object: ObjectHandle, program: string): LinkHandle
  /** May be called again. */
  linkDetach(link: LinkHandle): void
  /** `id` is 0 if the kernel has no link object for it (perf events before 5.15). */
  linkInfo(link: LinkHandle): { id: number; programId: number; type: string }
  /** Run time and count stay 0 unless `statsEnable` is on. */
  programInfo(object: ObjectHandle, program: string): ProgramInfo
  /** Opens an attached iterator: it runs during reads (src/kernel/iterator.ts). The caller closes the descriptor. */
  iteratorOpen(link: LinkHandle): number

  /** Before the load: allows attaching a program to many places with one link, if the kernel supports it (6.6). */
  uprobePrepare(object: ObjectHandle, program: string): void
  /**
   * Attaches a program to functions of a file with a path of up to 4095 bytes, for every process that maps it now or
   * later: at the instructions at 1 to 64 `offsets` of the file, or at the returns of the functions that begin there.
   * `cookies`: results of `bpf_get_attach_cookie` at each. The handle keeps it, even after the object is closed. Runs
   * on threads of the addon, since it waits for the kernel: a few milliseconds, longer while the memory of a process
   * that maps the file is locked. Rejects if the kernel does; throws on invalid arguments.
   */
  uprobeAttach(
    object: ObjectHandle,
    program: string,
    path: string,
    offsets: readonly number[],
    cookies: readonly number[],
    atReturn: boolean,
  ): Promise<UprobeHandle>
  /**
   * Detaches the program, on a thread: takes 0.05 s, before 6.6 0.1 s for each place, up to 16 at the same time.
   * Resolves when it is detached. May be called again.
   */
  uprobeDetach(uprobe: UprobeHandle): Promise<void>

  mapOpen(object: ObjectHandle, name: string): MapHandle
  /** Before the load: creates a map now, so that another object can share it (`objectReuseMap`) before this one is loaded. */
  mapMake(object: ObjectHandle, name: string): MapHandle
  /** False: no such key. `value` takes `slotSize` bytes. */
  mapLookup(map: MapHandle, key: Uint8Array, value: Uint8Array): boolean
  /** `flags`: 0 any, 1 only if absent (else EEXIST), 2 only if present (else ENOENT). A full map is E2BIG. */
  mapUpdate(map: MapHandle, key: Uint8Array, value: Uint8Array, flags: number): void
  mapDelete(map: MapHandle, key: Uint8Array): boolean
  /** Writes the key after `key` (undefined: the first) to `next`. False: there is none. */
  mapNextKey(map: MapHandle, key: Uint8Array | undefined, next: Uint8Array): boolean
  /**
   * Reads the next elements, up to the room in `keys` and `values`, and deletes them with `take`; returns their number.
   * `cursor` comes from `batchCursor`; `batchDone(cursor)` is true at the end. Uses BPF_MAP_LOOKUP_BATCH (5.6),
   * otherwise goes key by key: an element deleted during the walk may then cause duplicates. ENOSPC: one hash bucket
   * has more elements than there is room for; retry with more.
   */
  mapReadBatch(
    map: MapHandle,
    cursor: Uint8Array,
    keys: Uint8Array,
    values: Uint8Array,
    take: boolean,
  ): number
  /**
   * Maps an array map with BPF_F_MMAPABLE (5.5; `.data` and `.bss` are) as memory: reads and writes without a system
   * call. Elements are at multiples of the value's size rounded up to 8. The mapping lives as long as the buffer.
   */
  mapView(map: MapHandle): ArrayBuffer

  /** Maps a ring buffer (5.8), its data only once. There must be one consumer. */
  ringOpen(map: MapHandle): RingHandle
  /**
   * Copies as many whole records as fit: u32 length, u32 zero, payload padded to 8 bytes. Returns the bytes written.
   * Stops at an unfinished record. Skips and counts discarded records, and those that do not fit in an empty `target`.
   */
  ringDrain(ring: RingHandle, target: Uint8Array): number
  /**
   * From now on a thread of the addon drains the ring whenever a program wakes its reader (BPF_RB_FORCE_WAKEUP), and
   * keeps the records for `ringDrain`, in at most `limitBytes` of memory. May be called again with another limit;
   * records above it are kept.
   */
  ringAbsorb(ring: RingHandle, limitBytes: number): void
  /** Bytes waiting, including headers and unfinished records. */
  ringAvailable(ring: RingHandle): number
  ringCounters(ring: RingHandle): RingCounters
  ringClose(ring: RingHandle): void

  /**
   * Creates one event ring for every online CPU; `pagesPerCpu` is a power of two. The reader is woken when
   * `wakeupBytes` wait in one of them.
   */
  perfOpen(map: MapHandle, pagesPerCpu: number, wakeupBytes: number): PerfHandle
  /**
   * Like `ringDrain`, with the CPU in the second u32, and no order between CPUs, each of which has its share of
   * `target`. `perfMoreWaits` is set there in a CPU's last record if more of its records wait. The kernel pads samples,
   * so a length may exceed what the program wrote by up to 7 bytes.
   */
  perfDrain(perf: PerfHandle, target: Uint8Array): number
  perfCounters(perf: PerfHandle): { cpu: number; records: number; lost: number; oversized: number }[]
  perfClose(perf: PerfHandle): void

  /**
   * Calls back whenever the descriptor is readable: a ring map's, a perf buffer's, an epoll's. Does not keep the
   * process alive. `error` is an errno name; the watch has then ended.
   */
  pollStart(fd: number, onReadable: (error: string | undefined) => void): PollHandle
  pollStop(poll: PollHandle): void

  /**
   * From now on writes statistics about this thread's event loop, without its waits, to `figures`: number of turns,
   * seconds, the longest turn in seconds, which the caller may reset, then one bucket per upper bound in `bounds`, and
   * one more.
   */
  loopWatch(bounds: Float64Array, figures: Float64Array): void

  /**
   * libbpf's three probes: 1 supported, 0 unsupported, negative: -errno, unknown. Without privilege they are
   * meaningless (`tryLoad` reports that), and libbpf 1.1 cannot probe `tracing`: use `btfHas` for its attach points.
   */
  probeProgramType(type: number): number
  probeMapType(type: number): number
  probeHelper(programType: number, helper: number): number
  /** Tries to load instructions (8 bytes each) and unloads them: '' or the errno's name, EPERM without privilege. */
  tryLoad(programType: number, instructions: Uint8Array): string
  /** Whether the kernel's BTF has these types. Costs some 10 ms, for any number of names. ENOENT: no BTF. */
  btfHas(kind: 'func' | 'struct' | 'typedef' | 'enum', names: readonly string[]): boolean[]

  /**
   * A pair of connected sockets, for a child that answers requests one at a time. Reading and writing at the near end
   * fail with EAGAIN after `timeoutMs` (60,000 at most; 0: never). The handle closes the ends that are still open.
   */
  channelOpen(timeoutMs: number): ChannelHandle
  /** Their descriptors, which the channel closes. EBADF: it is closed. */
  channelEnds(channel: ChannelHandle): { near: number; far: number }
  /**
   * Passes the far end to the child and closes it here. If the thread ends before the child's exit is reported (pid 0),
   * the child is killed and reaped.
   */
  channelBelongs(channel: ChannelHandle, pid: number): void
  /** May be called again. */
  channelClose(channel: ChannelHandle): void
  /** A descriptor of an empty memory file with close-on-exec, which the caller closes. */
  memoryFile(): number

  /**
   * Prepares to use the management library of NVIDIA's driver: the first of 1 to 8 `libraries` that can be loaded, each
   * as for dlopen(3). `fd` becomes readable when there is an answer.
   */
  nvmlOpen(libraries: readonly string[]): NvmlHandle
  /**
   * Requests the state of all GPUs, on a separate thread: a driver that hangs blocks nothing else. Loads the library
   * first if necessary. EBUSY: the last request is not answered yet, and may never be.
   */
  nvmlAsk(nvml: NvmlHandle, perProcess: boolean): void
  /** Returns the answer once; undefined: there is none. */
  nvmlTake(nvml: NvmlHandle): NvmlAnswer | undefined
  /** Shuts the library down once it has answered; may be called again. */
  nvmlClose(nvml: NvmlHandle): void

  /** CPUs that may ever be online: the number of slots in a per-CPU value. */
  numCpus(): number
  /** Lifts RLIMIT_MEMLOCK, against which kernels before 5.11 count maps. */
  bumpMemlock(): void
  /** The three clocks at one moment, to within a microsecond. Monotonic is the clock of `bpf_ktime_get_ns`. */
  clock(): { monotonicNs: number; boottimeNs: number; realtimeUs: number }
  /** Name of the calling thread, 15 bytes. */
  setProcessName(name: string): void
  /** Ends the process immediately (_exit(2)): runs no handlers, flushes nothing, waits for nothing. */
  endProcess(code: number): never
  /**
   * Sends one datagram to an AF_UNIX socket, by its path or, after an `@`, its abstract name; never waits. False: the
   * receiver has too many unread. EINVAL: the address is neither, or longer than 107 bytes.
   */
  sendDatagram(address: string, bytes: Uint8Array): boolean
  /**
   * Offset of the next byte of data, at or after `offset`, that is not in a hole; -1: none. EINVAL: the file system
   * does not support this.
   */
  nextData(fd: number, offset: number): number
  /** Duplicates a descriptor of an open file or socket, with close-on-exec; the caller closes it. */
  duplicate(fd: number): number
  /**
   * Returns memory to the system that is not needed now: free memory of the C heap, and resident pages of the
   * runtime's file, of which the used ones come back from the page cache.
   */
  giveBackMemory(): void
  /**
   * Makes the kernel measure run time and count of all programs (5.8) until `statsDisable` or the end of the process.
   */
  statsEnable(): StatsHandle
  statsDisable(stats: StatsHandle): void

  /** Fills a `struct timex` (208 bytes on 64 bits) and returns the clock's state (adjtimex(2)). Changes nothing. */
  adjtimex(target: Uint8Array): number
  /** sysname, nodename, release, version, machine, domainname (uname(2)). */
  uname(): string[]
  /** Locks an open file without waiting (flock(2)); false if another open file has the lock. */
  flock(fd: number): boolean
  /**
   * ioctl(2). The argument is in and out; an empty one is a null pointer. EFAULT if the kernel would write beyond it.
   */
  ioctl(fd: number, request: number, argument: Uint8Array): number
  /** The ioctl SIOCETHTOOL of a network device; the data begins with the command, and is in and out as above. */
  ethtool(device: string, data: Uint8Array): void
  /**
   * Sends a request and calls `take` with the number of bytes that the kernel wrote to `buffer` (at least 32 KiB):
   * whole messages, repeatedly until the answer ends, so that its length needs no limit. Throws the kernel's error;
   * ENOBUFS and EMSGSIZE if messages were lost, EAGAIN after a second without an answer. An exception in `take` ends
   * it.
   */
  netlink(protocol: number, request: Uint8Array, buffer: Uint8Array, take: (length: number) => void): void
  /**
   * Opens a `struct perf_event_attr`, whose size is filled in, as a descriptor with close-on-exec. -1 as in the manual
   * page.
   */
  perfEventOpen(attr: Uint8Array, pid: number, cpu: number, groupFd: number, flags: number): number
  /**
   * Runs a program whenever an event of `perfEventOpen` overflows, and enables the event. The link then owns the
   * descriptor and closes it at its end; it may be used until then.
   */
  perfEventAttach(object: ObjectHandle, program: string, fd: number): LinkHandle
}

declare const kind: unique symbol
export type ObjectHandle = { readonly [kind]: 'object' }
export type LinkHandle = { readonly [kind]: 'link' }
export type UprobeHandle = { readonly [kind]: 'uprobe' }
export type PollHandle = { readonly [kind]: 'poll' }
export type StatsHandle = { readonly [kind]: 'stats' }
export type ChannelHandle = { readonly [kind]: 'channel' }
export type NvmlHandle = { readonly [kind]: 'nvml'; readonly fd: number }
/** `size`: bytes of its data. */
export type RingHandle = { readonly [kind]: 'ring'; readonly size: number }
/** `fd`: an epoll descriptor over all CPUs. */
export type PerfHandle = { readonly [kind]: 'perf'; readonly fd: number }
export interface RingCounters {
  readonly records: number
  readonly discarded: number
  readonly oversized: number
  /** Bytes of records that the thread of `ringAbsorb` drained. */
  readonly absorbedBytes: number
  /** Its current memory, and its peak. */
  readonly heldBytes: number
  readonly peakBytes: number
}
export type MapHandle = {
  readonly [kind]: 'map'
  readonly name: string
  readonly type: string
  /** Id in the kernel; a shared map (`objectReuseMap`) has the same id in all objects. 0: it was not created. */
  readonly id: number
  /** Valid until the object is closed. */
  readonly fd: number
  readonly keySize: number
  readonly valueSize: number
  /** Bytes of one value in lookups and updates: per-CPU maps have one for each of `numCpus`, padded to 8. */
  readonly slotSize: number
  readonly maxEntries: number
}

/** Types are named as in libbpf: `ringbuf`, `percpu_hash`. Sections of data are `<object>.rodata`. */
export interface MapSpec {
  readonly name: string
  readonly type: string
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
}

export interface ProgramSpec {
  readonly name: string
  readonly section: string
  readonly type: string
  readonly autoload: boolean
}

export interface ProgramInfo {
  readonly id: number
  readonly type: string
  readonly tag: string
  readonly runTimeNs: number
  readonly runCount: number
  readonly instructions: number
}

/** `errno` 0: loaded. `log`: output of libbpf and the verifier, with the middle removed above 60 KB. */
export interface LoadResult {
  readonly errno: number
  readonly code: string
  readonly log: string
}

/** NVML's answer (NVML API Reference Guide). A `status` is an `nvmlReturn_t`, and `error` its text. */
export interface NvmlAnswer {
  /** The failed step: find, load or initialise a library, or list its GPUs; '' if none. */
  readonly failed: '' | 'find' | 'load' | 'init' | 'ask'
  readonly status: number
  readonly error: string
  /** Driver version. */
  readonly driver: string
  /** The library in use. */
  readonly library: string
  /** By index; at most 64. */
  readonly devices: readonly NvmlDevice[]
}

export interface NvmlDevice {
  /** 0: it responds. Otherwise the rest may be empty. */
  readonly status: number
  readonly error: string
  readonly uuid: string
  readonly name: string
  readonly serial: string
  /** `00000000:65:00.0` */
  readonly bus: string
  readonly values: NvmlValues
  /** Partitions used as separate GPUs (MIG), at most 16. -1: it is no GPU instance. */
  readonly instances: readonly {
    readonly uuid: string
    readonly name: string
    readonly gpuInstance: number
    readonly memoryTotal: number
    readonly memoryUsed: number
  }[]
  /**
   * Rows of four: pid, bytes of memory (NaN: unknown), GPU instance and compute instance (-1: none). A process that
   * both computes and draws has two.
   */
  readonly processes: Float64Array
  /**
   * Since the last request, rows of six: pid, microseconds, and percent of multiprocessors, memory, encoder, decoder.
   */
  readonly samples?: Float64Array
}

/** Values that a GPU, its driver or an older library does not report are undefined. Utilization in percent of time. */
export interface NvmlValues {
  readonly utilization?: number
  readonly memoryBusy?: number
  readonly encoder?: number
  readonly decoder?: number
  /** Bytes. */
  readonly memoryTotal?: number
  readonly memoryUsed?: number
  /** Degrees Celsius. */
  readonly temperature?: number
  readonly powerMw?: number
  /** Millijoules since the driver was loaded. */
  readonly energyMj?: number
  readonly graphicsMhz?: number
  readonly smMhz?: number
  readonly memoryMhz?: number
  readonly videoMhz?: number
  readonly pcieSentBytes?: number
  readonly pcieReceivedBytes?: number
  /** Kilobytes per second, over 20 ms; only if the counters above are missing. */
  readonly pcieSentKbps?: number
  readonly pcieReceivedKbps?: number
  readonly linkGeneration?: number
  readonly linkWidth?: number
  /** Memory errors, since the driver was loaded and over the GPU's life. */
  readonly correctedSinceLoad?: number
  readonly uncorrectedSinceLoad?: number
  readonly correctedEver?: number
  readonly uncorrectedEver?: number
  /** Percent of the fan's maximum. */
  readonly fanSpeed?: number
  /** Bits of `nvmlClocksEventReasons`. */
  readonly clockReasons?: number
  /** 1: divided into instances. */
  readonly mig?: number
}

/** A missing feature of this machine, and how to fix it. */
export class Unsupported {
  readonly reason: string
  readonly hint: string
  constructor(reason: string, hint: string) {
    this.reason = reason
    this.hint = hint
  }
}

let loaded: Native | undefined

/** Loads the addon, once. The only place that does. */
export function loadNative(): Native | Unsupported {
  if (loaded) return loaded
  const path = findAsset('svc.node')
  if (!path) {
    return new Unsupported(
      `cannot find the native addon svc.node in ${assetDirectories.join(' or ')}`,
      'reinstall the package, or run tools/setup in a source tree',
    )
  }
  const native = loadNativeFrom(path)
  if (!(native instanceof Unsupported)) loaded = native
  return native
}

/** Loads the addon from another file. */
export function loadNativeFrom(path: string): Native | Unsupported {
  const module = { exports: {} }
  try {
    process.dlopen(module, path)
  } catch (error) {
    return explain(path, error instanceof Error ? error.message : String(error))
  }
  return module.exports as Native
}

/** Debian packages of the addon's libraries. */
const packages: Readonly<Record<string, string>> = {
  'libbpf.so.1': 'libbpf1',
  'libelf.so.1': 'libelf1',
  'libz.so.1': 'zlib1g',
}

function explain(path: string, message: string): Unsupported {
  const missing = /(lib[\w.+-]+\.so[.\d]*): cannot open shared object/.exec(message)?.[1]
  if (missing) {
    return new Unsupported(
      `cannot load the native addon: the library ${missing} is missing`,
      `apt-get install ${packages[missing] ?? `the package that contains ${missing}`}`,
    )
  }
  if (/version `LIBBPF_/.test(message)) {
    return new Unsupported(
      'cannot load the native addon: libbpf is older than 1.0',
      'install libbpf 1.0 or newer (apt-get install libbpf1)',
    )
  }
  return new Unsupported(`cannot load the native addon ${path}: ${message}`, 'reinstall the package')
}

/** A cursor at the start of a map, for `mapReadBatch`; fill it with zeros to start over. */
export function batchCursor(map: MapHandle): Uint8Array {
  return new Uint8Array(8 + Math.max(8, map.keySize))
}

/** True if `mapReadBatch` has read the whole map. */
export function batchDone(cursor: Uint8Array): boolean {
  return cursor[0] === 3
}

/** Set by `perfDrain` beside the CPU: more records wait. */
export const perfMoreWaits = 2 ** 31

/** Numbers of `enum bpf_prog_type` for the probes. */
export const programType = {
  socketFilter: 1,
  kprobe: 2,
  tracepoint: 5,
  perfEvent: 7,
  rawTracepoint: 17,
  tracing: 26,
} as const

/** Numbers of `enum bpf_map_type` for the probes. */
export const mapType = {
  hash: 1,
  perfEventArray: 4,
  percpuHash: 5,
  lruHash: 9,
  skStorage: 24,
  ringbuf: 27,
  taskStorage: 29,
} as const
