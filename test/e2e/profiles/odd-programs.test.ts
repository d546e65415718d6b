// owns: ports, load
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { exporterProgram, withoutExporter } from '../../helpers/exporter-peer.ts'
import { Bench } from '../../helpers/profiles/measured-program.ts'
import {
  fold,
  type HostSample,
  inFile,
  isFlagged,
  isUser,
  ofProgram,
  ProfiledHost,
  partOf,
  sumOf,
} from '../../helpers/profiles/profiled-host.ts'
import { freePort, listening } from '../../helpers/program.ts'

// Programs of every form, each attributed and unwound, or flagged.

let host: ProfiledHost
let bench: Bench
before(async () => {
  if (withoutBpf) return
  bench = new Bench()
  host = await ProfiledHost.start()
})
after(async () => {
  await host?.close()
  await bench?.close()
})

/** Names of a stack of user space, root first. */
function namesOf({ frames }: HostSample): string[] {
  return frames
    .filter(isUser)
    .map(({ name }) => name)
    .toReversed()
}

function endsLike(...names: string[]): (sample: HostSample) => boolean {
  const end = names.join(';')
  return sample => `;${namesOf(sample).join(';')}`.endsWith(`;${end}`)
}

/** Waits until stacks of a program are as wanted, and holds nearly all of the intervals behind that one to it. */
async function checkStacks(
  file: string,
  wanted: (names: readonly string[]) => boolean,
  least = 0.95,
): Promise<HostSample[]> {
  const found = (sample: HostSample) => ofProgram(file)(sample) && wanted(namesOf(sample))
  const [first] = await host.wait(
    `a stack of ${file} is as wanted`,
    found,
    ([sample]) => sample !== undefined,
  )
  const later = (sample: HostSample) => sample.startMs >= first!.endMs && ofProgram(file)(sample)
  const seen = await host.wait('half a second of it is told', later, found => sumOf(found) > 5e8)
  const part = partOf(seen, wanted)
  assert.ok(part >= least, `${part} of the stacks are as wanted: ${[...fold(seen)].slice(0, 10).join('\n')}`)
  return seen
}

test('threads are unwound to where they began', { skip: withoutBpf }, async () => {
  const file = bench.compile('threads', ['-fomit-frame-pointer'])
  const program = bench.start(file, ['2'])
  // clone3 in glibc 2.34 and newer, clone before.
  await checkStacks(file, names => /^(__)?clone3?;.*thread_body;spin$/.test(names.join(';')))
  await program.end('SIGKILL')
})

test('a signal handler is unwound through what it interrupted', { skip: withoutBpf }, async () => {
  const file = bench.compile('signals', ['-fomit-frame-pointer'])
  const program = bench.start(file)
  const inHandler = (names: readonly string[]) => names.includes('spin_in_handler')
  const seen = await checkStacks(file, names =>
    /^_start;.*;main(;work)?;spin_interrupted(;.*on_alarm;spin_in_handler)?$/.test(names.join(';')),
  )
  const part = partOf(seen, inHandler)
  assert.ok(part > 0.05 && part < 0.95, `${part} of the time is in the handler`)
  await program.end('SIGKILL')
})

test('a recursion of 1,000 is cut, and says so', { skip: withoutBpf }, async () => {
  const file = bench.compile('deep', ['-fomit-frame-pointer'])
  const program = bench.start(file)
  const seen = await checkStacks(file, names => names.at(-1) === 'spin' && names.at(-2) === 'descend')
  for (const sample of seen) {
    const descents = namesOf(sample).filter(name => name === 'descend').length
    assert.ok(descents >= 100, `${descents} frames of the recursion`)
    assert.ok(isFlagged(sample), `the root is ${namesOf(sample)[0]}`)
  }
  await program.end('SIGKILL')
})

test('a library that is opened later is unwound and named', { skip: withoutBpf }, async () => {
  const library = bench.compile('library', ['-shared', '-fPIC', '-fomit-frame-pointer'], 'libwork.so')
  const file = bench.compile('late', ['-fomit-frame-pointer'])
  const program = bench.start(file, [library])
  await checkStacks(file, names => names.join(';').endsWith('main;spin_before'))
  program.signal('SIGUSR1')
  const seen = await checkStacks(file, names =>
    /^_start;.*main;call_library;library_work;library_spin$/.test(names.join(';')),
  )
  const leaf = seen.find(endsLike('library_work', 'library_spin'))!.frames.find(isUser)!
  assert.equal(leaf.mapping.path, library)
  await program.end('SIGKILL')
})

test('a program that was deleted while it runs is unwound and named', { skip: withoutBpf }, async () => {
  const file = bench.compile('ratio', ['-fomit-frame-pointer'], 'deleted')
  const program = bench.start(file)
  rmSync(file)
  await checkStacks(file, names => /^_start;.*main;work;.*;spin$/.test(names.join(';')), 0.9)
  await program.end('SIGKILL')
})

test('a program without symbols is unwound, and its frames say that they have none', {
  skip: withoutBpf,
}, async () => {
  const file = bench.compile('ratio', ['-fomit-frame-pointer', '-s'], 'stripped')
  const program = bench.start(file)
  const seen = await checkStacks(file, names => names.filter(name => /stripped/.test(name)).length >= 4)
  const whole = partOf(seen, names => /__libc_start_main|__libc_start_call_main/.test(names.join(';')))
  assert.ok(whole > 0.95, `${whole} of the stacks reach the C library's start`)
  const bare = seen.flatMap(({ frames }) => frames).filter(({ mapping }) => mapping.path === file)
  assert.ok(bare.every(({ name, address }) => /^\[.*\]$/.test(name) && address > 0))
  assert.ok(bare.every(({ mapping }) => JSON.stringify(mapping.attributes).includes('build_id')))
  await program.end('SIGKILL')
})

test('short-lived programs are attributed and named', { skip: withoutBpf }, async () => {
  const loop = bench.start('/bin/bash', [
    '-c',
    `while :; do
       head -c 3000000 /bin/bash | gzip > /dev/null
       /usr/bin/python3 -c 'sum(i * i for i in range(300000))'
     done`,
  ])
  const gzip = execFileSync('readlink', ['-f', '/bin/gzip']).toString().trim()
  const python = execFileSync('readlink', ['-f', '/usr/bin/python3']).toString().trim()
  for (const file of [gzip, python]) {
    const known = (seen: readonly HostSample[]) => seen.some(sample => !isFlagged(sample))
    await host.wait(`${file} is known`, ofMain(file), known)
  }
  const sinceMs = Date.now()
  const later = (file: string) => (sample: HostSample) => sample.startMs >= sinceMs && ofMain(file)(sample)
  for (const file of [gzip, python]) {
    const seen = await host.wait('a second of it is told', later(file), found => sumOf(found) > 5e8)
    const whole = sumOf(seen.filter(sample => !isFlagged(sample))) / sumOf(seen)
    assert.ok(whole > 0.9, `${whole} of ${file} is whole: ${[...fold(seen)].slice(0, 10).join('\n')}`)
  }
  // Every sample says whose it was, whoever was gone when it was looked at.
  const all = await host.upToNow(({ kind }) => kind === 'cpu', sinceMs)
  assert.ok(all.every(({ resource }) => String(resource['service.name'] ?? '') !== ''))
  await loop.end('SIGKILL')
})

/** Of a program that is not ours alone: with a frame of its own file. */
function ofMain(file: string) {
  return ({ kind, frames }: HostSample) =>
    kind === 'cpu' && frames.some(({ mapping }) => mapping.path === file)
}

const withoutNamespaces =
  spawnSync('unshare', ['--mount', 'true']).status === 0 ? false : 'a mount namespace needs root and unshare'

test('a program that only a container sees is unwound and named', {
  skip: withoutBpf || withoutNamespaces,
}, async () => {
  const hidden = join(bench.directory, 'hidden')
  mkdirSync(hidden)
  const built = bench.compile('ratio', ['-fomit-frame-pointer'], 'in-container')
  const script = `mount -t tmpfs none ${hidden} && cp ${built} ${hidden}/contained && exec ${hidden}/contained`
  const program = bench.start('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script])
  await checkStacks(join(hidden, 'contained'), names => /^_start;.*main;work;.*;spin$/.test(names.join(';')))
  await program.end('SIGKILL')
})

test('a Go program is unwound and named, or flagged', { skip: withoutBpf || withoutExporter }, async () => {
  const file = join(bench.directory, 'go-program')
  copyFileSync(exporterProgram, file)
  execFileSync('chmod', ['755', file])
  const port = await freePort()
  const program = bench.start(file, [`--web.listen-address=127.0.0.1:${port}`])
  await listening(port)
  const load = bench.start('/bin/bash', [
    '-c',
    `while :; do curl -s -o /dev/null http://127.0.0.1:${port}/metrics; done`,
  ])
  const isGo = ({ frames }: HostSample) => frames.some(({ name }) => /^(runtime|net\/http)\./.test(name))
  await host.wait('its functions are named', ofProgram(file), seen => seen.some(isGo))
  const sinceMs = Date.now()
  await program.busyFor(2)
  const seen = await host.upToNow(ofProgram(file), sinceMs)
  await load.end('SIGKILL')
  await program.end('SIGKILL')

  const user = seen.filter(({ frames }) => frames.some(isUser))
  const named = partOf(user, names =>
    names.some(name => /^(runtime|net|syscall|internal|github)\b.*\./.test(name)),
  )
  assert.ok(named > 0.95, `${named} of the stacks have a function of Go`)
  const whole = partOf(user, names =>
    /^(runtime\.(goexit|mstart|mcall|rt0_go|morestack|systemstack)|\[)/.test(names[0]!),
  )
  assert.ok(
    whole > 0.9,
    `${whole} of the stacks reach a root of Go, or say why not: ${[...fold(user)].slice(0, 10).join('\n')}`,
  )
})

test('frames of scripts name their file', { skip: withoutBpf }, async () => {
  const script = join(bench.directory, 'own.py')
  copyFileSync(join(import.meta.dirname, '../../helpers/profiles/programs/ratio.py'), script)
  const program = bench.start('/usr/bin/python3', [script])
  await host.wait('they do', inFile(script), seen => seen.some(endsLike('Worker.do_a', 'leaf_a', 'spin')))
  await program.end('SIGKILL')
})
