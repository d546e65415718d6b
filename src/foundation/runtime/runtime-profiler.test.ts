// owns: process
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { Profile } from 'pprof-format'
import { AsyncWork } from './async-work.ts'
import { type ProfileRequest, ProfilerBusy, profileKinds, RuntimeProfiler } from './runtime-profiler.ts'
import { recordTrace } from './trace-file.ts'

const here = 'src/foundation/runtime/runtime-profiler.test.ts'
const directory = mkdtempSync(join(tmpdir(), 'svc-profiles-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const request = (over: Partial<ProfileRequest> = {}): ProfileRequest => ({
  seconds: 1,
  debug: 0,
  signal: new AbortController().signal,
  ...over,
})

/** Runs with debug mode on. */
async function watched(use: (profiler: RuntimeProfiler) => Promise<void>): Promise<void> {
  const profiler = new RuntimeProfiler()
  profiler.start()
  try {
    await turn() // the inspector may be loaded asynchronously
    await use(profiler)
  } finally {
    profiler.stop()
  }
}

/** Called by a builtin, which inlines nothing: what V8 inlines counts for the caller. */
function burnTestCpu(): string {
  let sum = 0
  for (let round = 0; round < 300; round++) sum += Math.sqrt(sum + round)
  return sum > 0 ? 'a' : 'b'
}

function burn(): void {
  'x'.repeat(2000).replace(/x/g, burnTestCpu)
}

/** Works while it waits. */
async function busily<T>(work: Promise<T>, step = burn): Promise<T> {
  const state = { done: false }
  const end = () => {
    state.done = true
  }
  work.then(end, end)
  while (!state.done) {
    step()
    await turn()
  }
  return work
}

interface Decoded {
  readonly profile: Profile
  readonly types: string[]
  readonly comments: string
  /** `name file:line` innermost first, with the values. */
  readonly stacks: { readonly frames: string[]; readonly values: number[] }[]
  readonly total: number[]
}

function decode(body: Buffer): Decoded {
  const profile = Profile.decode(gunzipSync(body))
  const text = (id: number | bigint) => profile.stringTable.strings[Number(id)]!
  const frames = new Map(
    profile.location.map(({ id, line }) => {
      const { functionId, line: number } = line[0]!
      const { name, filename } = profile.function.find(each => each.id === functionId)!
      return [Number(id), `${text(name)} ${text(filename)}:${number}`]
    }),
  )
  const stacks = profile.sample.map(({ locationId, value }) => ({
    frames: locationId.map(id => frames.get(Number(id))!),
    values: value.map(Number),
  }))
  const total = profile.sampleType.map((_, index) =>
    stacks.reduce((sum, { values }) => sum + values[index]!, 0),
  )
  const types = profile.sampleType.map(({ type, unit }) => `${text(type)}/${text(unit)}`)
  return { profile, types, comments: profile.comment.map(text).join('\n'), stacks, total }
}

/** The share of the stacks that hold a frame which begins so. */
function share({ stacks, total }: Decoded, index: number, frame: string): number {
  const held = stacks.filter(({ frames }) => frames.some(each => each.startsWith(frame)))
  return held.reduce((sum, { values }) => sum + values[index]!, 0) / total[index]!
}

/** What Go's tool says about a file; fails where it cannot open it. */
function goTop(name: string, body: Buffer): string {
  const file = join(directory, name)
  writeFileSync(file, body)
  return execFileSync('go', ['tool', 'pprof', '-top', file], {
    encoding: 'utf8',
    env: { ...process.env, HOME: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

test('a CPU profile shows the function that burns', async () => {
  await watched(async profiler => {
    const before = Date.now()
    const file = await busily(profiler.take('profile', request()))
    assert.equal(file.contentType, 'application/octet-stream')
    assert.equal(file.fileName, 'profile.pb.gz')
    const decoded = decode(file.body)
    const { profile, types, stacks } = decoded
    assert.deepEqual(types, ['samples/count', 'cpu/nanoseconds'])
    const burning = `burnTestCpu ${here}:`
    assert.ok(share(decoded, 0, burning) > 0.5)
    // Time in which the thread had no core counts for one sample, which may be anywhere.
    let time = share(decoded, 1, burning)
    for (let more = 2; time <= 0.5 && more > 0; more--)
      time = share(decode((await busily(profiler.take('profile', request()))).body), 1, burning)
    assert.ok(time > 0.5, String(time))
    assert.ok(!stacks.some(({ frames }) => frames[0]!.startsWith('(idle)')))
    assert.ok(Number(profile.durationNanos) >= 0.9e9)
    assert.equal(Number(profile.period), 5e6)
    const startMs = Number(BigInt(profile.timeNanos) / 1_000_000n)
    assert.ok(startMs >= before && startMs <= Date.now(), String(startMs))
    assert.match(goTop(file.fileName, file.body), /burnTestCpu/)
  })
})

test('a CPU profile of a process that only waits is not empty', async () => {
  await watched(async profiler => {
    const { stacks } = decode((await profiler.take('profile', request())).body)
    assert.ok(stacks.length > 0)
  })
})

const kept: object[] = []
function keepTestObjects(): void {
  for (let index = 0; index < 100_000; index++) kept.push({ index, list: [index] })
}

test('a heap profile shows what is kept, and adds up to what the process has', async () => {
  await watched(async profiler => {
    keepTestObjects()
    const buffer = Buffer.alloc(3_000_000)
    const file = await profiler.take('heap', request())
    const decoded = decode(file.body)
    const { heapUsed, external } = process.memoryUsage()
    assert.deepEqual(decoded.types, ['samples/count', 'inuse_space/bytes'])
    assert.equal(
      decoded.profile.stringTable.strings[Number(decoded.profile.defaultSampleType)],
      'inuse_space',
    )
    const keeping = share(decoded, 1, `keepTestObjects ${here}:`) * decoded.total[1]!
    assert.ok(keeping > 4e6, `${keeping} bytes kept`) // 8 MB, give or take what sampling misses
    const buffers = decoded.stacks.find(({ frames }) => frames[0] === '(array buffers) :0')!
    assert.ok(buffers.values[1]! >= buffer.length)
    const ratio = decoded.total[1]! / (heapUsed + external)
    assert.ok(ratio > 0.7 && ratio < 1.3, `${ratio} of what the process has`)
    assert.match(goTop(file.fileName, file.body), /keepTestObjects/)
  })
  kept.length = 0
})

test('asynchronous work has the stacks that began it', async t => {
  const older = setInterval(() => {}, 60_000)
  t.after(() => clearInterval(older))
  await watched(async profiler => {
    const timers = [1, 2, 3].map(function startTestTimers() {
      return setInterval(() => {}, 60_000)
    })
    const server = createServer()
    t.after(() => {
      for (const timer of timers) clearInterval(timer)
      server.close()
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const address = server.address() as { port: number }
    const socket = connect(address.port, '127.0.0.1')
    t.after(() => socket.destroy())
    await new Promise(resolve => socket.once('connect', resolve))
    for (let index = 0; index < 1000; index++) await Promise.resolve(index)

    const file = await profiler.take('goroutine', request())
    const decoded = decode(file.body)
    assert.deepEqual(decoded.types, ['goroutine/count'])
    const counted = (leaf: string, caller?: string) =>
      decoded.stacks
        .filter(
          ({ frames: [first, ...rest] }) =>
            first === `${leaf} :0` &&
            (caller === undefined ? rest.length === 0 : rest.some(each => each.startsWith(caller))),
        )
        .reduce((sum, { values }) => sum + values[0]!, 0)
    assert.equal(counted('(Timeout)', `startTestTimers ${here}:`), 3)
    assert.ok(counted('(Timeout)') >= 1, 'the older one, without a stack')
    assert.equal(counted('(TCPSERVERWRAP)', ''), 1)
    assert.ok(counted('(TCPWRAP)', '') >= 1)
    assert.equal(counted('(running)', 'take src/foundation/runtime/runtime-profiler.ts:'), 1)
    assert.equal(counted('(PROMISE)', ''), 0)
    assert.match(goTop(file.fileName, file.body), /\(TCPSERVERWRAP\)/)
    const text = (await profiler.take('goroutine', request({ debug: 2 }))).body.toString()
    assert.match(text, /^goroutine profile: total \d+\n/)
    assert.match(text, /\n3 @ \(Timeout\)\n(#\t.*\n)*#\tstartTestTimers src\/foundation\/runtime\/.*:\d+\n/)

    for (const timer of timers) clearInterval(timer)
    await turn() // hooks hear of an end in the next turn
    await turn()
    const later = decode((await profiler.take('goroutine', request())).body)
    assert.equal(share(later, 0, `startTestTimers ${here}:`), 0)
  })
})

test('however many resources there are, the record of them is bounded and says so', async () => {
  await watched(async profiler => {
    const timers = Array.from({ length: 12_000 }, () => setTimeout(() => {}, 60_000))
    const { comments, stacks, total } = decode((await profiler.take('goroutine', request())).body)
    for (const timer of timers) clearTimeout(timer)
    assert.match(comments, /\b\d+ resources were not recorded/)
    assert.ok(total[0]! >= 12_000, 'the runtime itself still counts them')
    assert.ok(stacks.length < 1000)
  })
})

test('threads are those of the kernel', async () => {
  await watched(async profiler => {
    const file = await profiler.take('threadcreate', request())
    const { total, stacks } = decode(file.body)
    assert.equal(total[0], readdirSync('/proc/self/task').length)
    assert.ok(stacks.some(({ frames }) => frames[0]!.startsWith('V8Worker')))
    assert.match(goTop(file.fileName, file.body), /V8Worker/)
  })
})

test('what has no counterpart is a valid, empty profile that says so', async () => {
  await watched(async profiler => {
    for (const kind of ['block', 'mutex']) {
      const file = await profiler.take(kind, request())
      const { stacks, types, comments } = decode(file.body)
      assert.deepEqual(stacks, [])
      assert.deepEqual(types, ['contentions/count', 'delay/nanoseconds'])
      assert.match(comments, /no equivalent/)
      assert.match(goTop(file.fileName, file.body), /Type: delay/)
      const text = (await profiler.take(kind, request({ debug: 1 }))).body.toString()
      assert.match(text, new RegExp(`^${kind} profile: total 0\n# Empty`))
    }
  })
})

interface TraceDocument {
  readonly traceEvents: {
    readonly ph: string
    readonly cat: string
    readonly name: string
    readonly pid: number
    readonly ts?: number
    readonly args: { data?: { cpuProfile?: { nodes: { callFrame: object }[]; samples: number[] } } }
  }[]
  readonly metadata: { readonly truncated: boolean }
}

test('a trace holds collections and stacks, and no path of this host', async () => {
  await watched(async profiler => {
    const file = await busily(profiler.take('trace', request()), () => {
      burn()
      keepTestObjects()
      kept.length = 0
    })
    assert.equal(file.contentType, 'application/json')
    assert.equal(file.fileName, 'trace.json')
    const text = file.body.toString()
    const { traceEvents, metadata } = JSON.parse(text) as TraceDocument
    assert.equal(metadata.truncated, false)
    for (const { ph, name, pid, ts, cat } of traceEvents) {
      assert.equal(pid, process.pid)
      assert.ok(typeof ph === 'string' && typeof name === 'string' && typeof cat === 'string')
      assert.ok(ph === 'M' || typeof ts === 'number', name)
    }
    assert.ok(traceEvents.some(({ name }) => name.startsWith('V8.GC')))
    const { nodes, samples } = traceEvents.find(({ name }) => name === 'ProfileChunk')!.args.data!.cpuProfile!
    assert.ok(samples.length > 0)
    assert.match(JSON.stringify(nodes), new RegExp(`"functionName":"burnTestCpu","url":"${here}"`))
    assert.ok(!text.includes(process.cwd()))
  })
})

test('a trace that is full is cut off, says so, and is still valid', async () => {
  const { json, text } = await busily(recordTrace(1, new AbortController().signal, 2000), () => {
    keepTestObjects()
    kept.length = 0
  })
  const { traceEvents, metadata } = JSON.parse(json.toString()) as TraceDocument
  assert.equal(metadata.truncated, true)
  assert.ok(traceEvents.some(({ name }) => name === 'ProfileChunk'))
  assert.match(text, /^trace: \d+ bytes, truncated\n/)
})

test('every kind is there as text', async () => {
  await watched(async profiler => {
    for (const { name, seconds } of profileKinds) {
      const file = await busily(
        profiler.take(name, request({ debug: 1, seconds: Math.min(1, seconds?.max ?? 1) })),
      )
      assert.equal(file.contentType, 'text/plain; charset=utf-8')
      assert.equal(file.fileName, `${name}.txt`)
      assert.match(file.body.toString(), new RegExp(`^${name}\\b.*\n`))
      assert.ok(file.body.length < 100_000)
      if (name === 'profile') assert.match(file.body.toString(), /\d+\.\dms +\d+\.\d% .*burnTestCpu src\//)
    }
  })
})

test('one profile that takes time at once; the client or the end of debug mode ends it', async () => {
  const profiler = new RuntimeProfiler()
  profiler.start()
  const client = new AbortController()
  const first = profiler.take('profile', request({ seconds: 60, signal: client.signal }))
  await assert.rejects(profiler.take('profile', request()), ProfilerBusy)
  await assert.rejects(profiler.take('trace', request()), /cannot take trace: profile is in progress/)
  assert.ok((await profiler.take('threadcreate', request())).body.length > 0)
  client.abort(new Error('the client has gone'))
  await assert.rejects(first, /^Error: the client has gone$/)

  const trace = profiler.take('trace', request({ seconds: 10 }))
  profiler.stop()
  await assert.rejects(trace, /cannot take trace: debug mode was turned off/)
  profiler.start()
  assert.ok((await profiler.take('profile', request())).body.length > 0)

  const late = profiler.take('profile', request({ signal: client.signal }))
  await assert.rejects(late, /the client has gone/)
  profiler.stop()
})

test('what cannot be taken is refused in words', async () => {
  const profiler = new RuntimeProfiler()
  await assert.rejects(profiler.take('heap', request()), /cannot take heap: debug mode is off/)
  profiler.start()
  await assert.rejects(profiler.take('allocs', request()), /there is no such profile/)
  await assert.rejects(profiler.take('profile', request({ seconds: 61 })), /seconds must be from 1 to 60/)
  await assert.rejects(profiler.take('trace', request({ seconds: 0 })), RangeError)
  profiler.stop()
})

test('debug mode may go on and off for ever', async () => {
  const profiler = new RuntimeProfiler()
  const round = async () => {
    profiler.start()
    profiler.start()
    await profiler.take('heap', request())
    await profiler.take('goroutine', request())
    profiler.stop()
    profiler.stop()
  }
  await round()
  const count = () => [readdirSync('/proc/self/fd').length, readdirSync('/proc/self/task').length]
  const [before, resources] = [count(), process.getActiveResourcesInfo().length]
  for (let index = 0; index < 100; index++) await round()
  assert.deepEqual(count(), before)
  assert.equal(process.getActiveResourcesInfo().length, resources)

  const work = new AsyncWork()
  work.start()
  work.stop()
  const unseen = startUnseenTimer()
  const { samples } = work.profile()
  clearInterval(unseen)
  const timers = samples.filter(({ stack }) => stack[0]!.name === '(Timeout)')
  assert.ok(timers.length > 0 && timers.every(({ stack }) => stack.length === 1))
})

function startUnseenTimer(): NodeJS.Timeout {
  return setInterval(() => {}, 60_000)
}

test('memory figures count allocations and collections, and never fall', async () => {
  const profiler = new RuntimeProfiler()
  const off = profiler.vars().memstats
  assert.ok(off.Alloc > 1e6 && off.Sys > off.Alloc && off.TotalAlloc >= off.Alloc)
  assert.equal(off.NumGC, 0)
  profiler.start()
  const start = profiler.vars().memstats
  for (let round = 0; round < 40; round++) {
    keepTestObjects()
    kept.length = 0
  }
  const on = profiler.vars()
  assert.ok(on.memstats.TotalAlloc - start.TotalAlloc > 200e6, String(on.memstats.TotalAlloc)) // 8 MB each
  assert.ok(on.memstats.NumGC > start.NumGC)
  assert.ok(Object.values(on.memstats).every(Number.isSafeInteger))
  assert.deepEqual(on.cmdline.slice(-process.argv.length + 1), process.argv.slice(1))
  profiler.stop()
  const stopped = profiler.vars().memstats
  assert.ok(stopped.TotalAlloc >= on.memstats.TotalAlloc && stopped.NumGC >= on.memstats.NumGC)
  profiler.start()
  assert.ok(profiler.vars().memstats.TotalAlloc >= stopped.TotalAlloc)
  profiler.stop()
})
