import { type Refusal, reportRefusal } from './load-refusals.ts'
import { type LoadedMap, type LoadedObject, noteClosed, noteLoaded, type ProgramState } from './loaded.ts'
import { MapEntries } from './map-entries.ts'
import type { LinkHandle, MapHandle, Native, ObjectHandle, UprobeHandle } from './native.ts'

export interface LoadOptions {
  readonly name: string
  /** Sets sizes and constants. Called for each attempt, since each one opens the object again. */
  readonly prepare?: (object: ObjectHandle) => void
  /** Programs that may be omitted if the kernel rejects them. */
  readonly optional?: readonly string[]
  /** A first attempt that has begun (`beginLoad`). */
  readonly begun?: ObjectHandle | undefined
}

/** The kernel rejected an object. `log` is complete, `message` is one line. */
export class LoadError extends Error {
  readonly code: string
  readonly refusal: Refusal
  readonly log: string
  constructor(name: string, code: string, refusal: Refusal, log: string) {
    const what = refusal.program
      ? `program '${refusal.program}' of BPF object '${name}'`
      : refusal.map
        ? `map '${refusal.map}' of BPF object '${name}'`
        : `BPF object '${name}'`
    const hint = code === 'EPERM' ? '; run as root, or with CAP_BPF and CAP_PERFMON' : ''
    super(`cannot load ${what}: ${refusal.reason} (${code})${hint}`)
    this.name = 'LoadError'
    this.code = code
    this.refusal = refusal
    this.log = log
  }
}

/** A loaded object: its maps, its links, and the programs that the kernel rejected. */
export class BpfObject implements LoadedObject {
  readonly native: Native
  readonly name: string
  readonly handle: ObjectHandle
  /** Omitted optional programs, and why. */
  readonly leftOut: ReadonlyMap<string, string>
  readonly #links = new Map<string, LinkHandle>()
  /** All attachments of any kind, with their programs. */
  readonly #attached = new Map<LinkHandle | UprobeHandle, string>()
  readonly #maps = new Map<string, MapHandle>()
  #listed: readonly { readonly map: LoadedMap; readonly entries: MapEntries }[] | undefined

  private constructor(
    native: Native,
    name: string,
    handle: ObjectHandle,
    leftOut: ReadonlyMap<string, string>,
  ) {
    this.native = native
    this.name = name
    this.handle = handle
    this.leftOut = leftOut
    noteLoaded(this)
  }

  /**
   * Loads an object. If the kernel rejects an optional program, retries without it; any other rejection is a
   * `LoadError`, and leaves nothing of the object in the kernel.
   */
  static load(native: Native, bytes: Uint8Array, options: LoadOptions): BpfObject {
    const optional = new Set(options.optional)
    const leftOut = new Map<string, string>()
    for (let { begun } = options; ; begun = undefined) {
      const handle = begun ?? native.objectOpen(bytes, options.name)
      let done = false
      try {
        if (begun === undefined) options.prepare?.(handle)
        for (const program of leftOut.keys()) native.objectSetAutoload(handle, program, false)
        const { errno, code, log } = native.objectLoad(handle)
        done = errno === 0
        if (done) return new BpfObject(native, options.name, handle, leftOut)
        const refusal = explainLoadLog(log)
        reportRefusal(options.name, refusal, log)
        // Each attempt omits one more, so the loop ends.
        if (!refusal.program || !optional.delete(refusal.program)) {
          throw new LoadError(options.name, code, refusal, log)
        }
        leftOut.set(refusal.program, refusal.reason)
      } finally {
        if (!done) native.objectClose(handle)
      }
    }
  }

  map(name: string): MapHandle {
    let map = this.#maps.get(name)
    if (!map) {
      map = this.native.mapOpen(this.handle, name)
      this.#maps.set(name, map)
    }
    return map
  }

  /** Attaches a program, once. */
  attach(program: string): LinkHandle {
    let link = this.#links.get(program)
    if (!link) {
      link = this.native.objectAttach(this.handle, program)
      this.#links.set(program, link)
      this.#attached.set(link, program)
    }
    return link
  }

  detach(program: string): void {
    const link = this.#links.get(program)
    if (!link) return
    this.#links.delete(program)
    this.detachEvent(link)
  }

  /** Runs a program at a perf event, whose descriptor the link then owns (`Native.perfEventAttach`). */
  attachEvent(program: string, fd: number): LinkHandle {
    const link = this.native.perfEventAttach(this.handle, program, fd)
    this.#attached.set(link, program)
    return link
  }

  detachEvent(link: LinkHandle): void {
    this.#attached.delete(link)
    this.native.linkDetach(link)
  }

  /** Attaches a program to functions of a file (`Native.uprobeAttach`). */
  async attachUprobe(program: string, ...place: UprobePlace): Promise<UprobeHandle> {
    const uprobe = await this.native.uprobeAttach(this.handle, program, ...place)
    this.#attached.set(uprobe, program)
    return uprobe
  }

  /** Resolves after the detachment; until then it still counts as attached. */
  async detachUprobe(uprobe: UprobeHandle): Promise<void> {
    await this.native.uprobeDetach(uprobe)
    this.#attached.delete(uprobe)
  }

  programs(): ProgramState[] {
    const links = new Map<string, number>()
    for (const program of this.#attached.values()) links.set(program, (links.get(program) ?? 0) + 1)
    return this.native.objectPrograms(this.handle).map(spec => {
      const info = spec.autoload ? this.native.programInfo(this.handle, spec.name) : undefined
      return {
        ...spec,
        object: this.name,
        id: info?.id ?? 0,
        runTimeNs: info?.runTimeNs ?? 0,
        runCount: info?.runCount ?? 0,
        attached: links.has(spec.name),
        links: links.get(spec.name) ?? 0,
        refused: this.leftOut.get(spec.name),
      }
    })
  }

  maps(): readonly { readonly map: LoadedMap; readonly entries: MapEntries }[] {
    this.#listed ??= this.native.objectMaps(this.handle).flatMap(({ name, type, maxEntries }) => {
      const map = this.map(name)
      // A map without an id was not created.
      if (map.id === 0) return []
      const entries = new MapEntries(this.native, map)
      return [{ map: { name, object: this.name, type, id: map.id, maxEntries }, entries }]
    })
    return this.#listed
  }

  close(): void {
    noteClosed(this)
    this.#links.clear()
    this.#attached.clear()
    this.#maps.clear()
    this.native.objectClose(this.handle)
  }
}

type UprobePlace =
  Parameters<Native['uprobeAttach']> extends [unknown, unknown, ...infer Place] ? Place : never

/** Finds in libbpf's messages which program or map was rejected, and the line with the reason. */
export function explainLoadLog(log: string): Refusal {
  const verifier = /prog '([^']+)': -- BEGIN PROG LOAD LOG --\n([\s\S]*?)(?:-- END PROG LOAD LOG --|$)/.exec(
    log,
  )
  const lines = log
    .split('\n')
    .map(line => line.replace(/^libbpf: /, '').trim())
    .filter(line => line !== '')
  const program = verifier?.[1] ?? firstMatch(lines, /^prog '([^']+)': /)
  const map = program ? undefined : firstMatch(lines, /^map '([^']+)': failed to create/)
  const reason = verifier && lastFinding(verifier[2]!)
  const cause = reason ?? lines.find(isCause) ?? 'the kernel gave no reason'
  const said = cause.replace(/^(prog|map) '[^']*': /, '')
  const lack = lackOf(said, map !== undefined)
  return { program, map, reason: lack ?? inWords(said), unknown: lack !== undefined }
}

/** The messages of kernels for features that they lack. */
function lackOf(reason: string, ofMap: boolean): string | undefined {
  const helper = /^(?:program of this type cannot use helper|(?:unknown|invalid) func) (\w+)#\d+/.exec(
    reason,
  )?.[1]
  if (helper !== undefined && !readsMemory.test(helper))
    return `the kernel does not have the helper ${helper} for programs of this type`
  if (reason.startsWith('failed to resolve CO-RE relocation'))
    return `${reason}: the kernel has no such type or member`
  if (reason === 'BPF_STX uses reserved fields')
    return 'the kernel has no atomic operations that return a value (Linux 5.12 and newer have them)'
  return ofMap && /^failed to create: Invalid argument/.test(reason)
    ? `${reason}: the kernel does not support this map type or size`
    : undefined
}

/** Helpers that a locked-down kernel rejects, with the message for unknown ones. */
const readsMemory = /^bpf_probe_read(_str)?$/

/** The messages for operations that are not permitted. */
function inWords(reason: string): string {
  return /^(program of this type cannot use helper|unknown func) bpf_probe_read(_str)?#/.test(reason)
    ? 'programs cannot read kernel memory: the kernel is locked down in mode confidentiality (kernel_lockdown(7))'
    : reason
}

function firstMatch(lines: readonly string[], pattern: RegExp): string | undefined {
  for (const line of lines) {
    const match = pattern.exec(line)
    if (match) return match[1]
  }
  return undefined
}

/** The verifier's finding is the last line before its statistics. */
function lastFinding(log: string): string | undefined {
  const lines = log.split('\n').map(line => line.trim())
  return lines.findLast(
    line =>
      line !== '' &&
      !/^(processed \d+ insns|verification time|stack depth|mark_precise|\[\.\.\.\])/.test(line),
  )
}

function isCause(line: string): boolean {
  // A rejected BTF is the cause only if there is no other.
  return !/^(prog '[^']*': failed to load: |failed to load object |Error in bpf_create_map_xattr)/.test(line)
}
