// owns: host
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { Lab, labObject } from '../../test/helpers/lab.ts'
import { nativeOrThrow } from '../../test/helpers/native.ts'
import { findAsset } from './assets.ts'
import { loadNativeFrom, mapType, type Native, programType, Unsupported } from './native.ts'

const native = nativeOrThrow()

/** `mov r0, 0; exit` */
const nothing = Uint8Array.of(0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0)

function inDirectory(body: (directory: string) => void): void {
  const directory = mkdtempSync(join(tmpdir(), 'svc-native-'))
  try {
    body(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Runs a script as a module with the addon's loader in scope; returns what it printed as JSON. */
function run(script: string, options: { uid?: number; flags?: string[] } = {}): unknown {
  const lines = `import { loadNative } from ${JSON.stringify(join(import.meta.dirname, 'native.ts'))}
    const native = loadNative()
    ${script}`
  const identity = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }
  const flags = [...(options.flags ?? []), '--no-warnings', '--input-type=module', '-e', lines]
  const child = spawnSync(process.execPath, flags, { encoding: 'utf8', timeout: 60_000, ...identity })
  assert.equal(child.status, 0, child.stderr)
  return JSON.parse(child.stdout || 'null')
}

test('a library that is missing is named, with the package that contains it', () => {
  inDirectory(directory => {
    const addon = readFileSync(findAsset('svc.node')!)
    const at = addon.indexOf('libbpf.so.1\0')
    assert.ok(at > 0)
    addon.write('libbpf.so.8', at)
    const path = join(directory, 'svc.node')
    writeFileSync(path, addon)
    const outcome = loadNativeFrom(path)
    assert.ok(outcome instanceof Unsupported)
    assert.equal(outcome.reason, 'cannot load the native addon: the library libbpf.so.8 is missing')
    assert.match(outcome.hint, /^apt-get install /)
  })
})

test('a file that is no addon is a reason, not a crash', () => {
  inDirectory(directory => {
    const path = join(directory, 'svc.node')
    writeFileSync(path, 'not an addon')
    const outcome = loadNativeFrom(path)
    assert.ok(outcome instanceof Unsupported)
    assert.match(outcome.reason, /cannot load the native addon .*svc\.node: /)
  })
})

test('without privilege every attempt is an error that says EPERM', { skip: withoutBpf }, () => {
  // The child may not read everywhere, so the object comes in its script.
  const object = JSON.stringify(Buffer.from(labObject()).toString('base64'))
  const seen = run(
    `const object = native.objectOpen(Buffer.from(${object}, 'base64'), 'lab')
    const result = native.objectLoad(object)
    let stats
    try { native.statsEnable() } catch (error) { stats = [error.code, error.message] }
    console.log(JSON.stringify({ code: result.code, log: result.log !== '', stats, uid: process.getuid(),
      load: native.tryLoad(${programType.rawTracepoint}, Uint8Array.of(${nothing.join()})) }))`,
    { uid: 65534 },
  )
  assert.deepEqual(seen, {
    code: 'EPERM',
    log: true,
    stats: ['EPERM', 'cannot measure BPF programs: operation not permitted'],
    uid: 65534,
    load: 'EPERM',
  })
})

test('refused by the verifier, refused for want of privilege and good are told apart', {
  skip: withoutBpf,
}, () => {
  assert.equal(native.tryLoad(programType.rawTracepoint, nothing), '')
  assert.equal(native.tryLoad(programType.rawTracepoint, new Uint8Array(8)), 'EINVAL')
  assert.equal(native.tryLoad(1000, nothing), 'EINVAL')
})

test('what the kernel has is found, what it cannot have is not', { skip: withoutBpf }, () => {
  assert.equal(native.probeProgramType(programType.socketFilter), 1)
  assert.equal(native.probeMapType(mapType.hash), 1)
  assert.notEqual(native.probeMapType(999), 1)
  assert.equal(native.probeHelper(programType.socketFilter, 1), 1)
  assert.equal(native.probeHelper(programType.socketFilter, 9999), 0)
})

test('types of the kernel are found by name and kind', { skip: withoutBpf }, () => {
  assert.deepEqual(native.btfHas('struct', ['task_struct', 'no_such_thing', 'sock']), [true, false, true])
  assert.deepEqual(native.btfHas('func', ['task_struct']), [false])
  assert.deepEqual(native.btfHas('typedef', ['btf_trace_sched_switch']), [true])
  assert.deepEqual(native.btfHas('enum', []), [])
})

test('the clocks belong together', () => {
  const before = Date.now()
  const { monotonicNs, boottimeNs, realtimeUs } = native.clock()
  const after = Date.now()
  assert.ok(realtimeUs / 1000 >= before - 1 && realtimeUs / 1000 <= after + 1)
  assert.ok(boottimeNs >= monotonicNs - 1e6)
  const again = native.clock()
  assert.ok(again.monotonicNs > monotonicNs)
})

test('the process can be named, its locked memory unbound, its unused memory given back', () => {
  const script = `native.setProcessName('svc-of-a-long-name')
    let limit
    try { native.bumpMemlock() } catch (error) { limit = error.code }
    const { readFileSync } = await import('node:fs')
    const filePages = () => Number(/RssFile:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1])
    const before = filePages()
    native.giveBackMemory()
    const gaveBack = filePages() < before / 2
    const locked = /Max locked memory +(\\S+)/.exec(readFileSync('/proc/self/limits', 'utf8'))[1]
    console.log(JSON.stringify([readFileSync('/proc/self/comm', 'utf8'), limit ?? locked, gaveBack]))`
  const [name, limit, gaveBack] = run(script) as [string, string, boolean]
  assert.equal(name, 'svc-of-a-long-n\n')
  assert.ok(gaveBack, 'pages of the runtime stayed')
  // Root in a container may lack CAP_SYS_RESOURCE, so a shell tells what is allowed.
  const allowed = spawnSync('sh', ['-c', 'ulimit -l unlimited']).status === 0
  assert.equal(limit, allowed ? 'unlimited' : 'EPERM')
})

test('code that the runtime moved to large pages is not given back', () => {
  const flags = ['--use-largepages=silent']
  assert.equal(run('native.giveBackMemory(); console.log(1)', { flags }), 1)
})

test('the process ends at once, though a thread waits for a file that never opens', () => {
  inDirectory(directory => {
    const fifo = join(directory, 'fifo')
    assert.equal(spawnSync('mkfifo', [fifo]).status, 0)
    const script = `import { loadNative } from ${JSON.stringify(join(import.meta.dirname, 'native.ts'))}
      const { open } = await import('node:fs')
      open(${JSON.stringify(fifo)}, 'r', () => {})
      setTimeout(() => loadNative().endProcess(7), 100)`
    const flags = ['--no-warnings', '--input-type=module', '-e', script]
    const child = spawnSync(process.execPath, flags, { timeout: 20_000, killSignal: 'SIGKILL' })
    assert.equal(child.status, 7)
  })
})

test('a watch does not keep the process alive, and its end is clean', () => {
  const script = `const { openSync } = await import('node:fs')
    const { execSync } = await import('node:child_process')
    const fifo = process.argv[0] && execSync('mktemp -u').toString().trim()
    execSync('mkfifo ' + fifo)
    const fd = openSync(fifo, 'r+')
    execSync('rm ' + fifo)
    globalThis.watch = native.pollStart(fd, () => {})
    native.pollStop(native.pollStart(fd, () => {}))
    console.log('true')`
  assert.equal(run(script), true)
})

test('an error thrown by the callback of a watch is an uncaught exception of the process', () => {
  const lines = `import { loadNative } from ${JSON.stringify(join(import.meta.dirname, 'native.ts'))}
    import { createServer, connect } from 'node:net'
    const native = loadNative()
    process.on('uncaughtException', error => { console.log(error.message); process.exit(7) })
    setTimeout(() => {}, 30_000)
    native.pollStart(0, () => { throw new Error('from the callback') })`
  const flags = ['--no-warnings', '--input-type=module', '-e', lines]
  const child = spawnSync(process.execPath, flags, { encoding: 'utf8', input: 'readable', timeout: 60_000 })
  assert.equal(child.stdout, 'from the callback\n')
  assert.equal(child.status, 7)
})

test('a worker can load the addon, watch, and end', () => {
  const script = `const { Worker } = await import('node:worker_threads')
    const worker = new Worker(\`
      const addon = { exports: {} }
      process.dlopen(addon, \${JSON.stringify(${JSON.stringify(findAsset('svc.node'))})})
      const { connect, createServer } = require('node:net')
      const server = createServer().listen(0, '127.0.0.1', () => {
        addon.exports.pollStart(server._handle.fd, () => {})
        require('node:worker_threads').parentPort.postMessage(addon.exports.numCpus())
        server.unref()
      })
    \`, { eval: true, execArgv: [] })
    let count
    worker.on('message', value => { count = value })
    worker.on('exit', code => console.log(JSON.stringify([code, count > 0])))`
  assert.deepEqual(run(script), [0, true])
})

test('handles that are dropped give back what they hold', { skip: withoutBpf }, () => {
  const object = JSON.stringify(Buffer.from(labObject()).toString('base64'))
  const seen = run(
    `const { readdirSync, readFileSync } = await import('node:fs')
    const bytes = Buffer.from(${object}, 'base64')
    const round = () => {
      const object = native.objectOpen(bytes, 'lab')
      native.objectLoad(object)
      native.objectAttach(object, 'svc_burst')
      native.ringOpen(native.mapOpen(object, 'ring'))
      native.perfOpen(native.mapOpen(object, 'events'), 1, 1)
      native.mapView(native.mapOpen(object, '.bss'))
      native.mapOpen(object, 'table')
      native.statsEnable()
    }
    const settle = async () => {
      for (let i = 0; i < 5; i++) { gc(); await new Promise(resolve => setImmediate(resolve)) }
    }
    const held = () => [readdirSync('/proc/self/fd').length,
      readFileSync('/proc/self/maps', 'utf8').split('\\n').filter(line => /bpf|perf_event/.test(line)).length]
    round(); await settle()
    const before = held()
    for (let i = 0; i < 10; i++) round()
    const during = held()
    await settle()
    console.log(JSON.stringify([before, held(), during[0] > before[0] + 50]))`,
    { flags: ['--expose-gc'] },
  ) as [number[], number[], boolean]
  assert.deepEqual(seen[1], seen[0])
  assert.equal(seen[2], true)
})

/** Functions that take no arguments, so that nothing can be wrong with them. */
const withoutArguments = [
  'numCpus',
  'bumpMemlock',
  'clock',
  'giveBackMemory',
  'statsEnable',
  'uname',
  'memoryFile',
]

test('every function that takes arguments refuses none, wrong types and wrong handles', () => {
  const exported = native as unknown as Record<string, (...values: unknown[]) => unknown>
  assert.ok(Object.keys(exported).length > 35)
  const wrong = [
    undefined,
    null,
    -1,
    1.5,
    Number.NaN,
    2 ** 60,
    '',
    'x'.repeat(1000),
    {},
    [],
    Symbol('s'),
    1n,
    () => {},
  ]
  for (const name of Object.keys(exported)) {
    if (withoutArguments.includes(name)) continue
    assert.throws(() => exported[name]!(), TypeError, `${name}()`)
    for (const value of wrong) {
      if (name === 'setProcessName' && typeof value === 'string' && value) continue
      const call = () => exported[name]!(value, value, value, value, value)
      assert.throws(call, TypeError, `${name}(${String(value)})`)
    }
  }
})

test('no mixture of arguments crashes, and each that fails throws an error with a code', {
  skip: withoutBpf,
}, () => {
  const lab = new Lab()
  const ring = native.ringOpen(lab.object.map('ring'))
  const perf = native.perfOpen(lab.object.map('events'), 1, 1)
  const closed = native.objectOpen(labObject(), 'closed')
  native.objectClose(closed)
  const detached = new Uint8Array(64)
  structuredClone(detached, { transfer: [detached.buffer] })
  const values: (() => unknown)[] = [
    () => undefined,
    () => 0,
    () => 1,
    () => 8,
    () => 4096,
    () => -5,
    () => 2 ** 32 - 1,
    () => 2 ** 53,
    () => 'table',
    () => 'ring',
    () => '.rodata',
    () => 'svc_burst',
    () => 'svc_tasks',
    () => 'struct',
    () => ['sock', 7],
    () => true,
    () => false,
    () => detached,
    () => new Uint8Array(0),
    () => new Uint8Array(8),
    () => new Uint8Array(16),
    () => new Uint8Array(4096),
    () => new Uint8Array(new SharedArrayBuffer(4096)),
    () => Buffer.alloc(100).subarray(3, 50),
    () => new Float64Array(8),
    () => Uint8Array.from(labObject().subarray(0, 4000)),
    () => native.objectOpen(labObject(), 'fuzz'),
    () => lab.object.handle,
    () => lab.object.map('table'),
    () => lab.object.map('queue'),
    () => lab.object.map('spread'),
    () => lab.object.map('ring'),
    () => lab.object.map('.bss'),
    () => lab.object.attach('svc_tasks'),
    () => ring,
    () => perf,
    () => closed,
    () => new Proxy(ring, {}),
    () => Object.create(lab.object.map('table')),
  ]
  // These would end the handles that the others need, or touch descriptors of the test runner.
  const leaveOut = [
    'pollStart',
    'flock',
    'ioctl',
    'objectClose',
    'ringClose',
    'perfClose',
    'setProcessName',
    'endProcess',
    'bumpMemlock',
    'memoryFile',
    'linkDetach',
  ]
  const names = Object.keys(native).filter(name => !leaveOut.includes(name)) as (keyof Native)[]
  let seed = 12345
  const random = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff
    return (seed >>> 8) % below
  }
  let worked = 0
  let failed = 0
  for (let i = 0; i < 10_000; i++) {
    const call = native[names[random(names.length)]!] as (...values: unknown[]) => unknown
    const given = Array.from({ length: random(6) }, () => values[random(values.length)]!())
    try {
      call(...given)
      worked++
    } catch (error) {
      failed++
      assert.ok(error instanceof Error && /^E[A-Z0-9_]+$/.test(String((error as NodeJS.ErrnoException).code)))
    }
  }
  assert.ok(worked > 100 && failed > 5000, `${worked} worked, ${failed} failed`)
  native.ringClose(ring)
  native.perfClose(perf)
  lab.close()
})

test('the addon names no protocol and no program', () => {
  const text = execFileSync('strings', [findAsset('svc.node')!], { encoding: 'utf8' })
  assert.doesNotMatch(text, /\b(http|grpc|redis|mysql|postgres|nginx|kafka)\b/i)
})
