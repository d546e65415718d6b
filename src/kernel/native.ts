import { assetDirectories, findAsset } from './assets.ts'

/**
 * The native addon, as native/*.c exports it: typed here and nowhere wrapped, so that a call costs one call.
 *
 * Every function throws: a `TypeError` for arguments that do not fit, else an `Error` "cannot <verb> <object>:
 * <cause>" with `code` (`EPERM`) and `errno`. Strings have 1 to 127 bytes. Buffers are `Uint8Array`s, and one that is
 * longer than needed is used from its start. Handles may be dropped: garbage collection releases what they hold.
 */
export interface Native {
  /** Reads a compiled object. Nothing reaches the kernel before `objectLoad`. `name` is cut to 15 bytes there. */
  objectOpen(bytes: Uint8Array, name: string): ObjectHandle
  /** Detaches and unloads all of the object; may be called again. Rings and views that are open stay readable. */
  objectClose(object: ObjectHandle): void
  objectMaps(object: ObjectHandle): MapSpec[]
  objectPrograms(object: ObjectHandle): ProgramSpec[]
  /** Before the load. The size of a ring is rounded up to a power of two pages. */
  objectSetMaxEntries(object: ObjectHandle, map: string, entries: number): void
  /**
   * Before the load: a map of a loaded object takes the place of the one of this name, and stays for as long as either
   * object. EINVAL: it is of another type, or its keys or values have another size.
   */
  objectReuseMap(object: ObjectHandle, name: string, map: MapHandle): void
  /** Before the load: first bytes of a section of global data (`.rodata`, `.data`, `.bss`) at an offset. */
  objectSetData(object: ObjectHandle, section: string, offset: number, bytes: Uint8Array): void
  /** Before the load: leaves a program out, or takes it in again. */
  objectSetAutoload(object: ObjectHandle, program: string, on: boolean): void
  /** Creates the maps and verifies the programs. After a failure the object is only good for `objectClose`. */
  objectLoad(object: ObjectHandle): LoadResult
  /** Attaches by the program's section. The object keeps the link, even if its handle is dropped. */
  objectAttach(object: ObjectHandle, program: string): LinkHandle
  /** May be called again. */
  linkDetach(link: LinkHandle): void
  /** `id` is 0 where the kernel has no link object for it (perf events before 5.15). */
  linkInfo(link: LinkHandle): { id: number; programId: number; type: string }
  /** Run time and count stay 0 unless `statsEnable` is on. */
  programInfo(object: ObjectHandle, program: string): ProgramInfo
  /** A descriptor of an attached iterator: it runs as it is read (src/kernel/iterator.ts). The caller closes it. */
  iteratorOpen(link: LinkHandle): number

  /** Before the load: lets a program be attached to many places by one link, where the kernel can (6.6). */
  uprobePrepare(object: ObjectHandle, program: string): void
  /**
   * Attaches a program to functions of a file with a path of up to 4095 bytes, for every process that maps it now or
   * later: at the instructions that stand at 1 to 64 `offsets` of the file, or where the functions that begin there
   * return. `cookies`: what `bpf_get_attach_cookie` says at each. The handle keeps it, also beyond the object's end.
   * Threads of the addon do it, since it waits for the kernel: a few milliseconds, longer where the memory of a process
   * that maps the file is held. Rejects where the kernel refuses; throws where an argument does not fit.
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
   * Takes the program off, in a thread: 0.05 s, before 6.6 for each place 0.1 s, and up to 16 at the same time. Resolves
   * when it is off. May be called again.
   */
  uprobeDetach(uprobe: UprobeHandle): Promise<void>

  mapOpen(object: ObjectHandle, name: string): MapHandle
  /** False: no such key. `value` takes `slotSize` bytes. */
  mapLookup(map: MapHandle, key: Uint8Array, value: Uint8Array): boolean
  /** `flags`: 0 any, 1 only if absent (else EEXIST), 2 only if there (else ENOENT). A full map is E2BIG. */
  mapUpdate(map: MapHandle, key: Uint8Array, value: Uint8Array, flags: number): void
  mapDelete(map: MapHandle, key: Uint8Array): boolean
  /** Key after `key` (undefined: the first) into `next`. False: there is none. */
  mapNextKey(map: MapHandle, key: Uint8Array | undefined, next: Uint8Array): boolean
  /**
   * Reads the next elements, as many as `keys` and `values` have room for, and deletes them with `take`; returns how
   * many. `cursor` comes from `batchCursor`; `batchDone(cursor)` tells the end. Uses BPF_MAP_LOOKUP_BATCH (5.6), else
   * goes key by key: an element deleted meanwhile may then show others twice. ENOSPC: one hash bucket has more
   * elements than there is room for; try again with more.
   */
  mapReadBatch(
    map: MapHandle,
    cursor: Uint8Array,
    keys: Uint8Array,
    values: Uint8Array,
    take: boolean,
  ): number
  /**
   * An array map with BPF_F_MMAPABLE (5.5; `.data` and `.bss` are) as memory: reads and writes without a system call.
   * Elements stand at multiples of the value's size rounded up to 8. The mapping lives as long as the buffer.
   */
  mapView(map: MapHandle): ArrayBuffer

  /** Maps a ring buffer (5.8), its data once. There must be one consumer. */
  ringOpen(map: MapHandle): RingHandle
  /**
   * Copies records out, as many as fit whole: u32 length, u32 zero, payload padded to 8 bytes. Returns the bytes
   * written. Ends at a record whose writer is not done. Skips and counts discarded records, and those that would not
   * fit an empty `target`.
   */
  ringDrain(ring: RingHandle, target: Uint8Array): number
  /**
   * From now on a thread of the addon takes records out of the ring whenever a program wakes its reader
   * (BPF_RB_FORCE_WAKEUP), and keeps them for `ringDrain`, in memory of at most `limitBytes`. May be called again with
   * another limit; what is kept above it is not given up.
   */
  ringAbsorb(ring: RingHandle, limitBytes: number): void
  /** Bytes that wait, headers and unfinished records included. */
  ringAvailable(ring: RingHandle): number
  ringCounters(ring: RingHandle): RingCounters
  ringClose(ring: RingHandle): void

  /**
   * Rings of one event each for every CPU that is online; `pagesPerCpu` is a power of two. The reader is woken when so many
   * bytes of one wait.
   */
  perfOpen(map: MapHandle, pagesPerCpu: number, wakeupBytes: number): PerfHandle
  /**
   * As `ringDrain`, with the CPU in the second u32, and no order between CPUs, each of which has its share of `target`.
   * `perfMoreWaits` is set there in a CPU's last record where more of it waits. The kernel pads samples, so a length may
   * exceed what the program wrote by up to 7 bytes.
   */
  perfDrain(perf: PerfHandle, target: Uint8Array): number
  perfCounters(perf: PerfHandle): { cpu: number; records: number; lost: number; oversized: number }[]
  perfClose(perf: PerfHandle): void

  /**
   * Calls back whenever the descriptor has something to read: a ring map's, a perf buffer's, an epoll's. Does not
   * keep the process alive. `error` is an errno name; the watch has then ended.
   */
  pollStart(fd: number, onReadable: (error: string | undefined) => void): PollHandle
  pollStop(poll: PollHandle): void

  /**
   * From now on counts the turns of this thread's event loop, the waits left out, into `figures`: turns, seconds, the
   * longest of them in seconds, which the caller may set back, and as many buckets as `bounds` has upper bounds, and one.
   */
  loopWatch(bounds: Float64Array, figures: Float64Array): void

  /**
   * The three probes by libbpf: 1 works, 0 does not, negative: -errno, cannot be told. Without privilege they mean
   * nothing (`tryLoad` tells), and libbpf 1.1 cannot try `tracing`: ask `btfHas` for its attach points.
   */
  probeProgramType(type: number): number
  probeMapType(type: number): number
  probeHelper(programType: number, helper: number): number
  /** Tries to load instructions (8 bytes each) and unloads them: '' or the errno's name, EPERM without privilege. */
  tryLoad(programType: number, instructions: Uint8Array): string
  /** Whether the kernel's BTF has these types. Costs some 10 ms, for any number of names. ENOENT: no BTF. */
  btfHas(kind: 'func' | 'struct' | 'typedef' | 'enum', names: readonly string[]): boolean[]

  /**
   * A pair of connected sockets, for a child that is asked by turns. Reading and writing at the near end fail with
   * EAGAIN after `timeoutMs` (60,000 at most; 0: never). The handle closes what is open of it.
   */
  channelOpen(timeoutMs: number): ChannelHandle
  /** Their descriptors, which the channel closes. EBADF: it is closed. */
  channelEnds(channel: ChannelHandle): { near: number; far: number }
  /**
   * The far end is the child's, and closed here. Where the thread is ended before the child (0: none any more) was seen to
   * end, the child is killed and reaped with it.
   */
  channelBelongs(channel: ChannelHandle, pid: number): void
  /** May be called again. */
  channelClose(channel: ChannelHandle): void
  /** A descriptor of an empty file in memory, closed on exec, which the caller closes. */
  memoryFile(): number

  /**
   * Prepares to ask the management library of NVIDIA's driver: the first of 1 to 8 `libraries` that can be loaded, each
   * as for dlopen(3). `fd` becomes readable when there is an answer.
   */
  nvmlOpen(libraries: readonly string[]): NvmlHandle
  /**
   * Asks for the state of all GPUs, on a thread of its own: a driver that hangs holds up nothing else. Loads the library
   * where it is not. EBUSY: there is no answer yet to the last question, and there may never be one.
   */
  nvmlAsk(nvml: NvmlHandle, perProcess: boolean): void
  /** The answer, once; undefined: there is none. */
  nvmlTake(nvml: NvmlHandle): NvmlAnswer | undefined
  /** Shuts the library down, when it has answered; may be called again. */
  nvmlClose(nvml: NvmlHandle): void

  /** CPUs that may ever be online: the number of slots in a per-CPU value. */
  numCpus(): number
  /** Lifts RLIMIT_MEMLOCK, against which kernels before 5.11 count maps. */
  bumpMemlock(): void
  /** The three clocks at one moment, to within a microsecond. Monotonic is that of `bpf_ktime_get_ns`. */
  clock(): { monotonicNs: number; boottimeNs: number; realtimeUs: number }
  /** Name of the calling thread, 15 bytes. */
  setProcessName(name: string): void
  /** Ends the process at once (_exit(2)): nothing is run, flushed or waited for. */
  endProcess(code: number): never
  /**
   * Sends one datagram to a socket of the family AF_UNIX, by its path or, after an `@`, its abstract name; never waits.
   * False: whoever reads there has too many unread. EINVAL: the address is neither, or longer than 107 bytes.
   */
  sendDatagram(address: string, bytes: Uint8Array): boolean
  /**
   * Where the next byte of an open file stands that is in no hole, at an offset or behind it; -1: the rest is a hole, or
   * the file ends before. EINVAL: its file system does not say.
   */
  nextData(fd: number, offset: number): number
  /** Another descriptor of the same open file or socket, closed on exec; whoever asked closes it. */
  duplicate(fd: number): number
  /** Returns free memory of the C heap to the system; true if there was some. */
  trimHeap(): boolean
  /** The kernel measures run time and count of all programs (5.8) until `statsDisable` or the process's end. */
  statsEnable(): StatsHandle
  statsDisable(stats: StatsHandle): void

  /** Fills in a `struct timex` (208 bytes on 64 bits) and returns the clock's state (adjtimex(2)). Changes nothing. */
  adjtimex(target: Uint8Array): number
  /** sysname, nodename, release, version, machine, domainname (uname(2)). */
  uname(): string[]
  /** Takes the lock of an open file without waiting (flock(2)); false where another open file has it. */
  flock(fd: number): boolean
  /**
   * ioctl(2). The argument is in and out; one without bytes is a null pointer. EFAULT where the kernel would write
   * beyond it.
   */
  ioctl(fd: number, request: number, argument: Uint8Array): number
  /** The ioctl SIOCETHTOOL of a network device; the data begins with the command, and is in and out as above. */
  ethtool(device: string, data: Uint8Array): void
  /**
   * Sends a request and calls `take` with how much of `buffer` (32 KiB at least) the kernel has filled: whole messages,
   * again and again until the answer ends, so that its length needs no bound. Throws the kernel's error; ENOBUFS and
   * EMSGSIZE where something got lost, EAGAIN after a second of silence. What `take` throws ends it.
   */
  netlink(protocol: number, request: Uint8Array, buffer: Uint8Array, take: (length: number) => void): void
  /** A descriptor, closed on exec, of `struct perf_event_attr`, whose size is filled in. -1 as in the manual page. */
  perfEventOpen(attr: Uint8Array, pid: number, cpu: number, groupFd: number, flags: number): number
  /**
   * Runs a program whenever an event of `perfEventOpen` overflows, and enables the event. From then on the descriptor is
   * the link's, which closes it when it ends; it may be used until then.
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
  /** Bytes of records that the thread of `ringAbsorb` took. */
  readonly absorbedBytes: number
  /** Memory that it has now, and the most that it has had. */
  readonly heldBytes: number
  readonly peakBytes: number
}
export type MapHandle = {
  readonly [kind]: 'map'
  readonly name: string
  readonly type: string
  /** In the kernel; objects that share a map (`objectReuseMap`) have it with one number. 0: it was not made. */
  readonly id: number
  /** Valid until the object is closed. */
  readonly fd: number
  readonly keySize: number
  readonly valueSize: number
  /** Bytes of one value in lookups and updates: per-CPU maps have one for each of `numCpus`, padded to 8. */
  readonly slotSize: number
  readonly maxEntries: number
}

/** Types are named as libbpf names them: `ringbuf`, `percpu_hash`. Sections of data are `<object>.rodata`. */
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

/** `errno` 0: loaded. `log`: what libbpf and the verifier said, its middle cut out above 60 KB. */
export interface LoadResult {
  readonly errno: number
  readonly code: string
  readonly log: string
}

/** What NVML says (NVML API Reference Guide). A `status` is an `nvmlReturn_t`, and `error` says the same in words. */
export interface NvmlAnswer {
  /** What went wrong: no library was there, or it could not be loaded, initialised, or asked for its GPUs. */
  readonly failed: '' | 'find' | 'load' | 'init' | 'ask'
  readonly status: number
  readonly error: string
  /** Version of the driver. */
  readonly driver: string
  /** Which of the libraries it was. */
  readonly library: string
  /** By index; 64 at most. */
  readonly devices: readonly NvmlDevice[]
}

export interface NvmlDevice {
  /** 0: it answers. Otherwise the rest may be empty. */
  readonly status: number
  readonly error: string
  readonly uuid: string
  readonly name: string
  readonly serial: string
  /** `00000000:65:00.0` */
  readonly bus: string
  readonly values: NvmlValues
  /** Parts of it that are used as GPUs of their own (MIG), 16 at most. -1: it is no GPU instance. */
  readonly instances: readonly {
    readonly uuid: string
    readonly name: string
    readonly gpuInstance: number
    readonly memoryTotal: number
    readonly memoryUsed: number
  }[]
  /**
   * Rows of four: pid, bytes of memory (NaN: not known), GPU instance and compute instance (-1: none). A process that
   * computes and draws has two.
   */
  readonly processes: Float64Array
  /** Since the last question, rows of six: pid, microseconds, and percent of multiprocessors, memory, encoder, decoder. */
  readonly samples?: Float64Array
}

/** What a GPU, its driver or an older library does not tell is left out. Parts of time in percent. */
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
  /** Kilobytes a second, over 20 ms; only where the counters above are missing. */
  readonly pcieSentKbps?: number
  readonly pcieReceivedKbps?: number
  readonly linkGeneration?: number
  readonly linkWidth?: number
  /** Errors of memory, since the driver was loaded and over the GPU's life. */
  readonly correctedSinceLoad?: number
  readonly uncorrectedSinceLoad?: number
  readonly correctedEver?: number
  readonly uncorrectedEver?: number
  /** Percent of what the fan is made for. */
  readonly fanSpeed?: number
  /** Bits of `nvmlClocksEventReasons`. */
  readonly clockReasons?: number
  /** 1: divided into instances. */
  readonly mig?: number
}

/** Something that this machine lacks: what, and what fixes it. */
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

/** Loads the addon from a file of its own. */
export function loadNativeFrom(path: string): Native | Unsupported {
  const module = { exports: {} }
  try {
    process.dlopen(module, path)
  } catch (error) {
    return explain(path, error instanceof Error ? error.message : String(error))
  }
  return module.exports as Native
}

/** Debian packages of what the addon is linked to. */
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

/** A cursor at the start of a map, for `mapReadBatch`; fill it with zeros to start again. */
export function batchCursor(map: MapHandle): Uint8Array {
  return new Uint8Array(8 + Math.max(8, map.keySize))
}

/** Whether `mapReadBatch` has read the whole map. */
export function batchDone(cursor: Uint8Array): boolean {
  return cursor[0] === 3
}

/** Of `perfDrain`, beside the CPU: more of it waits. */
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
