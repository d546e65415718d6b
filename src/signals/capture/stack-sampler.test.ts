// owns: ports, load
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { soak } from '../../../test/helpers/soak.ts'
import { ElfFile } from '../../foundation/lib/elf/elf-file.ts'
import {
  type FileIdentity,
  frameSpace,
  maxFileId,
  type RawStack,
  type RuntimeSettings,
  type SampleKind,
  type StackCount,
  type StackSink,
  stackEnds,
  type UnknownFile,
  type UnknownRuntime,
} from '../../foundation/model/raw-stack.ts'
import { cfaRule, rbpRule, ruleBytes } from '../../foundation/model/unwind-table.ts'
import {
  svcFrameSpace,
  svcSampleKind,
  svcStackEnd,
  svcUnwindCfa,
  svcUnwindRbp,
  svcUnwindRule,
} from '../../kernel/gen/profile.ts'
import { loadedPrograms } from '../../kernel/loaded.ts'
import { buildUnwindTable } from '../profiles/eh-frame.ts'
import { UnwindArena } from '../profiles/unwind-arena.ts'
import { primesNear, softwareEvent } from './stack-events.ts'
import { StackSampler, type StackSamplerSettings } from './stack-sampler.ts'

const skip = withoutBpf
const rate = 997
const everything: StackSamplerSettings = {
  sampleRate: rate,
  cpu: true,
  memory: false,
  offCpu: false,
  includeKernel: true,
}

const program = join(import.meta.dirname, '../../../test/fixtures/stacks/stacks.c')

let directory = ''
const binaries = { plain: '', framePointers: '' }
const children: ChildProcess[] = []
let host: Host | undefined

before(() => {
  if (skip) return
  directory = mkdtempSync(join(tmpdir(), 'svc-stacks-'))
  const compile = (name: string, ...flags: string[]) => {
    const path = join(directory, name)
    execFileSync('gcc', [
      '-O2',
      '-fno-builtin',
      '-Wl,-z,lazy',
      '-w',
      ...flags,
      '-o',
      path,
      program,
      '-pthread',
    ])
    return path
  }
  binaries.plain = compile('stacks', '-fomit-frame-pointer')
  binaries.framePointers = compile(
    'stacks-fp',
    '-fno-omit-frame-pointer',
    '-fno-asynchronous-unwind-tables',
    '-fno-unwind-tables',
  )
})
after(() => {
  if (directory !== '') rmSync(directory, { recursive: true })
})
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  host?.close()
  host = undefined
})

interface Counted {
  readonly kind: SampleKind
  readonly comm: string
  readonly count: number
  readonly value: number
  readonly stack: RawStack | undefined
  readonly kernel: Float64Array | undefined
}

/** A sampler with the tables of all files that it meets, as the agent has them made. */
class Host implements StackSink {
  readonly sampler: StackSampler
  readonly stacks = new Map<number, RawStack>()
  readonly runtimes: UnknownRuntime[] = []
  readonly counted = new Map<number, Counted[]>()
  readonly paths: string[] = ['']
  told = 0
  runtimeOf: (path: string) => number = () => 0
  settingsOf: (runtime: UnknownRuntime, path: string) => RuntimeSettings | undefined = () => undefined
  readonly #kernel = new Map<number, Float64Array>()
  readonly #ids = new Set<string>()
  readonly #arena: UnwindArena
  readonly #symbols = new Map<string, { elf: ElfFile; names: { address: number; name: string }[] }>()

  constructor(settings = everything, native = nativeOrThrow()) {
    this.sampler = new StackSampler(native, settings, this)
    this.#arena = new UnwindArena(this.sampler.tables)
  }

  userStack(stack: RawStack): void {
    this.told++
    this.stacks.set(stack.hash, stack)
  }

  kernelStack(hash: number, addresses: Float64Array): void {
    this.#kernel.set(hash, addresses)
  }

  unknownFile(file: UnknownFile): void {
    const key = `${file.dev}:${file.inode}:${file.generation}`
    if (this.#ids.has(key)) return
    const link = `/proc/${file.pid}/map_files/${file.start.toString(16)}-${file.end.toString(16)}`
    try {
      const path = readlinkSync(link)
      const fd = openSync(link, 'r')
      this.#ids.add(key)
      this.add(path, file, ElfFile.of(fd))
      closeSync(fd)
    } catch {
      // It has ended, or runs something that is no program.
    }
  }

  add(path: string, file: FileIdentity, elf: ElfFile): void {
    const id = this.paths.push(path) - 1
    this.#arena.put(id, buildUnwindTable(elf), this.runtimeOf(path), () => {})
    this.sampler.publish(file, id)
  }

  unknownRuntime(runtime: UnknownRuntime): void {
    this.runtimes.push(runtime)
    const settings = this.settingsOf(runtime, this.paths[runtime.file]!)
    this.sampler.setRuntime(runtime.pid, settings)
  }

  /** Adds what was counted to `counted`. */
  collect(): void {
    this.sampler.collect(({ kind, pid, comm, count, value, userHash, kernelHash }: StackCount) => {
      const of = this.counted.get(pid) ?? []
      const [stack, kernel] = [this.stacks.get(userHash), this.#kernel.get(kernelHash)]
      of.push({ kind, comm, count, value, stack, kernel })
      this.counted.set(pid, of)
    })
  }

  /** What was counted of a process, once there is enough of it. */
  async enough(pid: number, isEnough: (counted: Counted[]) => boolean): Promise<Counted[]> {
    for (;;) {
      this.collect()
      const counted = this.counted.get(pid) ?? []
      if (isEnough(counted)) return counted
      await delay(50)
    }
  }

  /** Samples of a program that goes on for ever, from when its files are known and it has begun. */
  async stacksOf(pid: number, samples = 100): Promise<Counted[]> {
    await this.enough(pid, counted => times(counted.filter(isKnown)) >= 10)
    this.counted.clear()
    return this.enough(pid, counted => times(counted) >= samples)
  }

  /** Names of a stack's frames, leaf first. */
  names(stack: RawStack | undefined): string[] {
    return Array.from(stack?.spaces ?? [], (space, i) => this.name(space, stack!.offsets[i]!))
  }

  name(space: number, offset: number): string {
    const path = this.paths[space]
    // A child is this program until it runs its own, and this one has too many names to list.
    if (space === 0 || path === undefined || path === '' || path === process.execPath) return '?'
    const { elf, names } = this.#symbolsOf(path)
    const address = elf.addressOf(offset) ?? 0
    return names.findLast(symbol => symbol.address <= address)?.name ?? path
  }

  close(): void {
    this.sampler.close()
  }

  #symbolsOf(path: string) {
    let known = this.#symbols.get(path)
    if (known === undefined) {
      const lines = [[], ['-D']].flatMap(more => listing('nm', ['-n', ...more, path]))
      const names = lines.flatMap(line => {
        const [, address, name] = /^([\da-f]+) [tTwWiI] (.*)$/.exec(line) ?? []
        return name === undefined ? [] : [{ address: Number.parseInt(address!, 16), name }]
      })
      names.sort((a, b) => a.address - b.address)
      known = { elf: ElfFile.of(openSync(path, 'r')), names }
      this.#symbols.set(path, known)
    }
    return known
  }
}

/** Descriptors of performance events that this process has. */
function perfEvents(): number[] {
  return readdirSync('/proc/self/fd').flatMap(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === 'anon_inode:[perf_event]' ? [Number(fd)] : []
    } catch {
      return [] // that of the list
    }
  })
}

const delay = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const attached = () => loadedPrograms('profile').flatMap(({ name, attached }) => (attached ? [name] : []))
const times = (counted: Counted[]) => counted.reduce((sum, { count }) => sum + count, 0)
const isKnown = ({ stack }: Counted) => stack !== undefined && stack.end !== 'unknown_file'
const sum = (counted: Counted[]) => counted.reduce((sum, { value }) => sum + value, 0)

function listing(command: string, args: string[]): string[] {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split('\n')
}

function open(settings?: StackSamplerSettings): Host {
  host = new Host(settings)
  return host
}

function start(path: string, ...args: (string | number)[]): number {
  const child = spawn(path, args.map(String), { stdio: 'ignore' })
  children.push(child)
  return child.pid!
}

/** Runs a program that prints a number. */
async function run(path: string, ...args: (string | number)[]): Promise<{ pid: number; printed: number }> {
  const child = spawn(path, args.map(String), { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  let text = ''
  for await (const chunk of child.stdout!) text += chunk
  return { pid: child.pid!, printed: Number(text) }
}

/** Holds a measure of how far something is off to a bound, in the best of five runs: a busy host adds to it. */
async function below(bound: number, measure: () => Promise<number>): Promise<void> {
  const measured: number[] = []
  while (measured.length < 5) {
    measured.push(await measure())
    if (measured.at(-1)! < bound) return
  }
  assert.fail(`not below ${bound}: ${measured.join(' ')}`)
}

test('user space and the kernel side number rules, ends and frames alike', () => {
  const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  const numbered = (names: readonly string[]) => Object.fromEntries(names.map((name, i) => [camel(name), i]))
  assert.deepEqual(numbered(svcUnwindCfa), cfaRule)
  assert.deepEqual(numbered(svcUnwindRbp), rbpRule)
  assert.equal(svcUnwindRule.size, ruleBytes)
  assert.deepEqual(svcStackEnd, stackEnds)
  assert.deepEqual(svcFrameSpace, frameSpace)
  assert.deepEqual(svcSampleKind, ['cpu', 'memory', 'off_cpu'])
})

test('rates are different primes near the one that is asked for', () => {
  assert.deepEqual(primesNear(19), [19, 17, 23])
  assert.deepEqual(primesNear(97), [97, 101, 103, 89])
  assert.deepEqual(primesNear(997), [997, 991, 1009, 983])
  assert.deepEqual(primesNear(1), [1])
  for (let asked = 1; asked < 1000; asked++)
    for (const prime of primesNear(asked)) assert.ok(Math.abs(prime - asked) <= asked / 4)
})

test('code without frame pointers is walked to its outermost function, in the shares of its time', {
  skip,
}, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.plain, 'spin'), soak ? 20_000 : 1_500)
  const shares = { once: 0, twice: 0 }
  for (const { stack, count, comm } of counted) {
    assert.equal(stack?.end, 'complete')
    assert.equal(comm, 'stacks')
    const names = host.names(stack)
    assert.deepEqual(names.slice(-4, -3), ['main'], names.join(' '))
    assert.equal(names.at(-1), '_start')
    // The loop that calls both is itself on the processor now and then.
    if (names[0] === 'spin') continue
    const by = names.includes('once') ? 'once' : 'twice'
    assert.ok(names.includes('spin') && names.includes(by), names.join(' '))
    shares[by] += count
  }
  const ratio = shares.twice / shares.once
  assert.ok(ratio > (soak ? 1.85 : 1.4) && ratio < (soak ? 2.15 : 2.9), `${ratio}`)
})

test('a handler is walked through the frame of its signal to what was interrupted', { skip }, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.plain, 'signal'))
  for (const { stack } of counted) {
    assert.equal(stack?.end, 'complete')
    const names = host.names(stack)
    assert.ok(names.includes('on_signal'), names.join(' '))
    assert.ok(names.indexOf('interrupted') > names.indexOf('on_signal') + 1, names.join(' '))
    assert.ok(names.includes('main'))
  }
})

test('a frame whose address is kept in memory is followed', { skip }, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.plain, 'aligned', 100))
  for (const { stack } of counted) {
    const names = host.names(stack)
    assert.equal(stack?.end, 'complete', names.join(' '))
    assert.ok(names.indexOf('main') > names.indexOf('aligned'), names.join(' '))
  }
})

test('a procedure linkage table has its caller', { skip }, async () => {
  const host = open()
  const pid = start(binaries.plain, 'far')
  const counted = await host.stacksOf(pid, soak ? 3_000 : 500)
  const outcomes = new Map<string, number>()
  for (const { stack, count } of counted) {
    const names = host.names(stack).filter(name => name !== 'abs')
    const outcome = `${stack?.end} ${names.slice(-5, -3).join(' ')}`
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count)
  }
  assert.deepEqual([...outcomes.keys()], ['complete call_far main'])
})

test('deeper recursion than is kept is told as cut off', { skip }, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.plain, 'recurse', 1000))
  for (const { stack } of counted) {
    assert.equal(stack?.end, 'truncated')
    assert.equal(stack.spaces.length, 127)
    assert.ok(
      host
        .names(stack)
        .slice(5)
        .every(name => name === 'recurse'),
    )
  }
})

test('the vDSO is walked by the table of its image', { skip }, async () => {
  const [, from, to] = /^([\da-f]+)-([\da-f]+) .*\[vdso\]$/m.exec(readFileSync('/proc/self/maps', 'latin1'))!
  const [begin, end] = [Number.parseInt(from!, 16), Number.parseInt(to!, 16)]
  const memory = openSync('/proc/self/mem', 'r')
  const host = open()
  host.add('', { dev: 0, inode: 0, generation: 0 }, ElfFile.of(memory, end - begin, begin))
  closeSync(memory)
  const counted = await host.stacksOf(start(binaries.plain, 'clock'), 200)
  const within = counted.filter(({ stack }) => stack?.spaces[0] === 1)
  assert.ok(within.length > 0)
  for (const { stack } of within) assert.equal(stack?.end, 'complete')
  for (const { stack } of within) assert.ok(host.names(stack).includes('read_clock'))
})

test('threads are walked to where they begin', { skip }, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.plain, 'threads', 4))
  for (const { stack } of counted) {
    assert.equal(stack?.end, 'complete')
    assert.ok(host.names(stack).includes('thread_root'))
    assert.ok(!host.names(stack).includes('main'))
  }
})

test('code without tables is walked by frame pointers', { skip }, async () => {
  const host = open()
  const counted = await host.stacksOf(start(binaries.framePointers, 'recurse', 20))
  for (const { stack, count } of counted) {
    const names = host.names(stack)
    // In a function's first instructions its caller's frame pointer still stands: the caller is lost.
    if (names.filter(name => name === 'recurse').length < 20) assert.ok(count < 20)
    assert.ok(names.includes('main'), names.join(' '))
  }
})

test('what runs in the kernel has the stacks of both sides, unless the kernel’s are not wanted', {
  skip,
}, async () => {
  const host = open()
  const pid = start(binaries.plain, 'kernel')
  const inKernel = (counted: Counted[]) => counted.filter(({ kernel }) => kernel !== undefined)
  const settled = inKernel(await host.stacksOf(pid)).filter(({ stack }) => stack?.end === 'complete')
  assert.ok(settled.length > 0)
  for (const { stack, kernel } of settled) {
    assert.ok(host.names(stack).includes('read_zeros'))
    assert.ok(kernel!.every(address => address > 2 ** 47))
  }
  assert.ok(settled.some(({ kernel }) => kernel!.length > 3))
  // One of a run's stacks was seen that fell short of a call and its caller; thousands of others did not.
  const short = settled.filter(({ kernel }) => kernel!.length < 2)
  const text = short
    .map(({ kernel }) => [...kernel!].map(address => address.toString(16)).join(' '))
    .join('; ')
  assert.ok(times(short) <= times(settled) / 50, `${times(short)} of ${times(settled)}: ${text}`)
  host.sampler.apply({ ...everything, includeKernel: false })
  host.collect()
  host.counted.clear()
  const after = await host.stacksOf(pid)
  assert.equal(inKernel(after).length, 0)
})

test('samples add up to the CPU time of a process', { skip }, async () => {
  const host = open()
  let all = 0
  await below(soak ? 0.03 : 0.1, async () => {
    host.counted.clear()
    const collecting = setInterval(() => host.collect(), 500) // before there are too many distinct ones
    const { pid, printed } = await run(binaries.plain, 'burn', soak ? 20_000 : 1_500)
    clearInterval(collecting)
    host.collect()
    const sampled = sum(host.counted.get(pid) ?? [])
    all += sampled
    return Math.abs(sampled / printed - 1)
  })
  const { samplesNs, idleNs, lost } = host.sampler.counters()
  assert.ok(samplesNs >= all && idleNs >= 0)
  assert.deepEqual(lost, { cpu: 0, memory: 0, off_cpu: 0 })
})

test('memory is told where it becomes resident, in the shares of its size', { skip }, async () => {
  const host = open({ ...everything, cpu: false, memory: true })
  // Once its files are known.
  const other = start(binaries.plain, 'grow', 1_000_000)
  await host.enough(other, counted => counted.some(({ stack }) => host.names(stack).includes('grow_twice')))
  process.kill(other, 'SIGKILL')
  const rounds = soak ? 400 : 60
  const { pid } = await run(binaries.plain, 'grow', rounds)
  host.collect()
  const shares = { grow_once: 0, grow_twice: 0 }
  let all = 0
  for (const { kind, stack, value } of host.counted.get(pid)!) {
    assert.equal(kind, 'memory')
    all += value
    const names = host.names(stack)
    for (const by of ['grow_once', 'grow_twice'] as const) if (names.includes(by)) shares[by] += value
  }
  const ratio = shares.grow_twice / shares.grow_once
  assert.ok(Math.abs(ratio - 2) < (soak ? 0.06 : 0.3), `${ratio}`)
  assert.ok(Math.abs(all / (rounds * (12 << 20)) - 1) < 0.1, `${all}`)
})

test('waits are told where they began, and add up', { skip }, async () => {
  const host = open({ ...everything, cpu: false, offCpu: true })
  const other = start(binaries.plain, 'nap', 1_000_000)
  await host.enough(other, counted => counted.some(isKnown))
  // On a busy host only some waits are told, each for several.
  await below(soak ? 0.1 : 0.4, async () => {
    host.counted.clear()
    const { pid, printed } = await run(binaries.plain, 'nap', soak ? 200 : 25)
    host.collect()
    const shares = { nap_long: 0, nap_short: 0 }
    for (const { kind, stack, value, kernel } of host.counted.get(pid) ?? []) {
      assert.equal(kind, 'off_cpu')
      const names = host.names(stack)
      for (const by of ['nap_long', 'nap_short'] as const) {
        if (!names.includes(by)) continue
        shares[by] += value
        assert.equal(stack?.end, 'complete')
        assert.ok(kernel !== undefined && kernel.length > 3)
      }
    }
    const slept = shares.nap_long + shares.nap_short
    const ratio = shares.nap_long / shares.nap_short
    return Math.max(Math.abs(slept / printed - 1), Math.abs(ratio / 3 - 1) / 2)
  })
})

test('a table is not used for a file that was given the inode of its own', { skip }, async () => {
  const host = open()
  const add = host.add.bind(host)
  const met: (() => void)[] = []
  host.add = (path, file, elf) => {
    if (path !== binaries.plain) return add(path, file, elf)
    add(path, { ...file, generation: (file.generation + 1) >>> 0 }, elf)
    met.push(() => host.sampler.publish(file, host.paths.length - 1))
  }
  const pid = start(binaries.plain, 'spin')
  await host.enough(pid, () => met.length > 0)
  host.counted.clear()
  const counted = await host.enough(pid, counted => times(counted) >= 50)
  assert.ok(!counted.some(isKnown))
})

test('waits that end while nobody notes them are not told later', { skip }, async () => {
  const waits = { ...everything, cpu: false, offCpu: true }
  const host = open(waits)
  const pid = start(binaries.plain, 'nap', 1_000_000)
  await below(2e9, async () => {
    await host.enough(pid, counted => counted.length > 0)
    host.sampler.apply({ ...waits, offCpu: false })
    for (let i = 0; i < 2; i++) host.collect()
    host.counted.clear()
    await delay(2_000)
    host.sampler.apply(waits)
    return sum(await host.enough(pid, counted => times(counted) >= 3))
  })
})

test('the time before sampling began anew is not sampled', { skip }, async () => {
  const { sampler } = open({ ...everything, sampleRate: 1 })
  const sampled = () => sampler.counters().samplesNs + sampler.counters().idleNs
  while (sampled() === 0) await delay(50)
  sampler.apply({ ...everything, sampleRate: 1, cpu: false })
  await delay(2_000)
  const [before, since] = [sampled(), process.hrtime.bigint()]
  sampler.apply(everything)
  await delay(300)
  const all = sampled() - before
  const most = availableParallelism() * Number(process.hrtime.bigint() - since)
  assert.ok(all > 0 && all < 1.1 * most, `${all} of ${most}`)
})

test('a CPU that was away is sampled again', { skip }, async () => {
  const { sampler } = open()
  const { native } = sampler.object
  // What becomes of events of a CPU that goes offline: nothing counts any more.
  const disable = 0x2401 // _IO('$', 1)
  const none = new Uint8Array()
  for (const fd of perfEvents()) native.ioctl(fd, disable, none)
  const taken = () => sampler.counters().samplesNs + sampler.counters().idleNs
  const before = taken()
  for (let i = 0; i < 50 && taken() === before; i++) {
    sampler.apply(everything) // as is done every few seconds
    await delay(20)
  }
  assert.ok(taken() > before)
  const events = perfEvents().length
  sampler.apply(everything)
  assert.deepEqual(perfEvents().length, events)
})

test('a kind that the kernel refuses does not keep others from beginning or ending', { skip }, () => {
  const native = nativeOrThrow()
  let isRefused = false
  const open: typeof native.perfEventOpen = (attr, ...where) => {
    if (isRefused && attr[8] === softwareEvent.pageFaults) throw new Error('refused')
    return native.perfEventOpen(attr, ...where)
  }
  const settings = { ...everything, cpu: false, offCpu: true }
  host = new Host(settings, { ...native, perfEventOpen: open })
  const { sampler } = host
  isRefused = true
  assert.throws(() => sampler.apply({ ...everything, memory: true }), /refused/)
  assert.deepEqual(attached(), ['svc_profile_cpu'])
})

test('a stack is told once, and again when all are forgotten', { skip }, async () => {
  const host = open()
  const pid = start(binaries.plain, 'spin')
  await host.stacksOf(pid, 500)
  const [of] = [...host.stacks.values()].filter(stack => stack.pid === pid && stack.end === 'complete')
  assert.ok(of !== undefined)
  host.stacks.clear()
  host.sampler.forgetStacks()
  while (!host.stacks.has(of.hash)) {
    await delay(20)
    host.collect()
  }
  assert.deepEqual(host.stacks.get(of.hash)?.offsets, of.offsets)
})

test('a process is left out that asks for it', { skip }, async () => {
  const pid = start(binaries.plain, 'spin')
  const host = open({ ...everything, selfPid: pid })
  const other = start(binaries.plain, 'spin')
  await host.stacksOf(other)
  assert.equal(host.counted.get(pid), undefined)
})

test('the rate changes while it runs', { skip }, async () => {
  const host = open({ ...everything, sampleRate: 19 })
  const pid = start(binaries.plain, 'spin')
  const measured = async (samples: number) => {
    host.collect()
    host.counted.clear()
    const counted = await host.enough(pid, counted => times(counted) >= samples)
    return (times(counted) * 1e9) / sum(counted)
  }
  const slow = await measured(10)
  host.sampler.apply(everything)
  await measured(5)
  const fast = await measured(300)
  assert.ok(slow < 40 && fast > 100, `${slow} ${fast}`)
})

test('frames of CPython stand beside those of its process', { skip }, async () => {
  const path = '/usr/bin/python3.11'
  const runtime = /^([\da-f]+) \w _PyRuntime$/m.exec(listing('nm', ['-D', path]).join('\n'))![1]!
  const host = open()
  host.runtimeOf = path => (path.endsWith('python3.11') ? 2 : 0)
  host.settingsOf = ({ start, offset }, path) => {
    const fd = openSync(path, 'r')
    const bias = start - ElfFile.of(fd).addressOf(offset)!
    closeSync(fd)
    // Places in the structures of CPython 3.11 (Include/cpython/pystate.h, internal/pycore_frame.h).
    const python = {
      runtime: Number.parseInt(runtime, 16) + bias,
      currentThread: 576,
      nativeThreadId: 160,
      frameHolder: 56,
      frameInHolder: 8,
      code: 32,
      previous: 48,
      entry: 68,
    }
    return { python }
  }
  const script = 'def leaf():\n  while True: pass\ndef middle(): leaf()\nlist(map(lambda x: middle(), [1]))'
  const pid = start(path, '-c', script)
  const withInner = (counted: Counted[]) =>
    counted.filter(({ stack }) => stack && stack.inner.spaces.length > 0)
  await host.enough(pid, counted => times(withInner(counted)) >= 50) // it has begun
  host.counted.clear()
  const counted = withInner(await host.enough(pid, counted => times(withInner(counted)) >= 100))
  for (const { stack } of counted) {
    const { spaces, offsets } = stack!.inner
    assert.ok(spaces.every(space => space === frameSpace.cpython))
    const codes = Array.from(offsets)
    assert.deepEqual(
      codes.map(code => pythonName(pid, code - (code % 2))),
      ['leaf', 'middle', '<lambda>', '<module>'],
    )
    assert.deepEqual(
      codes.map(code => code % 2),
      [0, 0, 1, 1],
    )
  }
  assert.equal(host.runtimes.filter(runtime => runtime.pid === pid).length, 1)
})

/** `co_qualname` of a code object of CPython 3.11, as compact ASCII. */
function pythonName(pid: number, code: number): string {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  const read = (at: number, length: number) => {
    const bytes = Buffer.alloc(length)
    readSync(memory, bytes, 0, length, at)
    return bytes
  }
  const name = Number(read(code + 128, 8).readBigUInt64LE())
  const text = read(name + 48, Number(read(name + 16, 8).readBigUInt64LE())).toString('latin1')
  closeSync(memory)
  return text
}

test('frames of V8 name functions instead of places in compiled code', { skip }, async () => {
  const host = open()
  host.runtimeOf = path => (path.endsWith('/node') ? 1 : 0)
  // Of Node.js 22 and later; 24 before (`v8dbg_class_JSFunction__shared_function_info__SharedFunctionInfo`).
  host.settingsOf = () => ({ v8Shared: 32 })
  const script =
    'function leaf(){for(let i=0;i<1e6;i++)globalThis.x=Math.sqrt(i)*x}x=1;function outer(){for(;;)leaf()}outer()'
  const pid = start(process.execPath, '-e', script)
  const hasScript = ({ stack }: Counted) => stack?.spaces.includes(frameSpace.v8) === true
  const isWhole = (each: Counted) => hasScript(each) && each.stack!.end === 'complete'
  await host.enough(pid, counted => times(counted.filter(isWhole)) >= 10) // its files are known
  host.counted.clear()
  const counted = await host.enough(pid, counted => times(counted.filter(hasScript)) >= 200)
  const ends = counted.filter(hasScript).map(({ stack }) => stack!.end)
  assert.ok(ends.filter(end => end === 'complete').length > 0.8 * ends.length, ends.join(' '))
  const functions = new Map<number, number>()
  for (const { stack, count } of counted.filter(hasScript))
    stack!.spaces.forEach((space, i) => {
      const at = stack!.offsets[i]!
      if (space === frameSpace.v8) functions.set(at, (functions.get(at) ?? 0) + count)
    })
  assert.ok(
    [...functions.values()].filter(count => count >= 100).length >= 2,
    'outer and its callers are met again and again',
  )
  assert.ok([...functions.keys()].every(at => at % 8 === 0))
})

test('settings are not used for another program of the same process', { skip }, async () => {
  const host = open()
  const told: string[] = []
  host.runtimeOf = path => (/\/(stacks|dash)$/.test(path) ? 1 : 0)
  host.settingsOf = (runtime, path) => {
    if (runtime.pid === pid) told.push(path)
    return { v8Shared: 32 }
  }
  const sign = join(directory, 'go')
  const script = `while ! [ -e '${sign}' ]; do :; done; exec '${binaries.plain}' spin`
  const pid = start('/bin/sh', '-c', script)
  await host.enough(pid, () => told.length > 0)
  writeFileSync(sign, '')
  await host.enough(pid, () => told.length > 1)
  assert.deepEqual(
    told.map(path => basename(path)),
    ['dash', 'stacks'],
  )
  assert.ok(host.sampler.counters().otherMemory > 0)
})

test('where stacks cannot be walked by tables they are told by frame pointers, and why is said', {
  skip,
}, async () => {
  const host = open({ ...everything, memory: true, offCpu: true, degraded: true })
  assert.ok(host.sampler.degraded !== undefined)
  const counted = await host.stacksOf(start(binaries.framePointers, 'recurse', 20))
  for (const { stack } of counted) {
    assert.equal(stack?.end, 'frame_pointer_end')
    assert.ok(stack.spaces.every(space => space === 0))
  }
  assert.ok(counted.some(({ stack }) => stack!.spaces.length > 15))
  assert.deepEqual(attached(), ['svc_profile_cpu_plain', 'svc_profile_memory_plain'])
})

test('an event that is none is an error that names the program', { skip }, () => {
  const { native, handle } = open().sampler.object
  const attach = (program: string, fd: number) => native.perfEventAttach(handle, program, fd)
  assert.throws(
    () => attach('svc_profile_cpu', 0),
    /^Error: cannot attach program 'svc_profile_cpu' of BPF object/,
  )
  assert.throws(() => attach('svc_profile_none', 0), { code: 'ENOENT' })
  assert.throws(() => attach('svc_profile_cpu', -1), /the event's descriptor must be a whole number/)
})

test('programs of all kinds attach and go; maps take less than 24 MB; nothing stays', { skip }, async () => {
  const host = open({ ...everything, memory: true, offCpu: true })
  const all = ['svc_profile_cpu', 'svc_profile_memory', 'svc_profile_off_cpu']
  assert.deepEqual(attached(), all)
  const ids = loadedPrograms('profile').map(({ id }) => `${id}: `)
  assert.equal(ids.length, 3)
  assert.ok(host.sampler.mapBytes < 24 * 1024 * 1024, `${host.sampler.mapBytes}`)
  host.sampler.apply({ ...everything, cpu: false })
  assert.deepEqual(attached(), [])
  host.sampler.apply({ ...everything, memory: true, offCpu: true })
  assert.deepEqual(attached(), all)
  assert.equal(host.sampler.tables.files.length / host.sampler.tables.fileWords.size, maxFileId + 1)
  assert.ok(perfEvents().length > 0)
  host.sampler.close()
  host.sampler.close()
  assert.equal(perfEvents().length, 0)
  assert.deepEqual(loadedPrograms('profile'), [])
  assert.ok(host.sampler.counters().samples.cpu >= 0)
  host.sampler.drain()
  host.sampler.collect(() => assert.fail('it is closed'))
  const stands = (line: string) => ids.some(id => line.startsWith(id))
  while (listing('bpftool', ['prog']).some(stands)) await delay(20) // the kernel lets go a little later
})
