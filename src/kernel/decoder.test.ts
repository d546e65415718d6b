// owns: process
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../../test/helpers/program.ts'
import { soak } from '../../test/helpers/soak.ts'
import { DecodeError, Decoder } from './decoder.ts'

const root = join(import.meta.dirname, '../..')
const scratch = mkdtempSync(join(tmpdir(), 'svc-decoder-'))
const origin = { file: '1:2', owner: '1:1000' }
const decoder = new Decoder()
after(() => {
  decoder.close()
  rmSync(scratch, { recursive: true })
})

function demangled(names: readonly string[], by = decoder, from = origin): string[] {
  return by.demangle(names.map(name => ({ name, origin: from })))
}

/** Children that run the decoder; those that ended are reaped when the loop has a turn. */
function children(): number[] {
  const isOurs = (pid: number) => {
    const [, name, state, parent] = /^\d+ \((.*)\) (\S) (\d+)/.exec(
      readFileSync(`/proc/${pid}/stat`, 'utf8'),
    )!
    return name === 'svc-decode' && state !== 'Z' && Number(parent) === process.pid
  }
  return readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      try {
        return pid > 0 && isOurs(pid)
      } catch {
        return false // it ended
      }
    })
}

/** What binutils, which has the same library, makes of names. */
function filtered(names: readonly string[]): string[] {
  const input = `${names.join('\n')}\n`
  return execFileSync('c++filt', ['-i'], { input, maxBuffer: 1 << 30, encoding: 'utf8' }).split('\n')
}

test('names of C++ are written as binutils writes them', () => {
  const listed = execFileSync('nm', [process.execPath], { maxBuffer: 1 << 30, encoding: 'utf8' })
  const mangled = [...new Set(listed.match(/(?<= )_Z[^\s@]+/g))]
  const stride = soak ? 1 : Math.max(1, Math.floor(mangled.length / 5000))
  const names = mangled.filter((_, index) => index % stride === 0)
  assert.ok(names.length >= 5000)
  const want = filtered(names)
  const found: string[] = []
  for (let at = 0; at < names.length; at += 5000) found.push(...demangled(names.slice(at, at + 5000)))
  // Longer ones stay as they are.
  names.forEach((name, index) => {
    assert.equal(found[index], want[index]!.length <= 4096 ? want[index] : name)
  })
  assert.deepEqual(demangled(['_ZN3foo3barEi.part.0', '_Zqq', 'main', '', '_ZN3fooE\0']), [
    'foo::bar(int) [clone .part.0]',
    '_Zqq',
    'main',
    '',
    '_ZN3fooE\0',
  ])
  // One of each kind of parts whose counts and names the library keeps elsewhere.
  const kinds = [
    '_ZN1AUt1_C2Ev',
    '_Z1fIN1BUt6_EEvT_',
    '_ZZ1gvENKUlvE3_clEv',
    '_ZZ1gvENKUlT_E0_clIiEEDaS_',
    '_ZZ1giEd2_N1B1hEv',
    '_Z1fIDF16_EvT_',
    '_ZN1ADC1a1bEE',
    '_ZNW1M1aEv',
    '_Z1fILin5EEvv',
    '_Z1fILb1ELc65EEvv',
    '_ZTv0_n24_N1AD0Ev',
    '_ZThn16_N1AD1Ev',
    '_ZGVZ1fvE1x',
    '_ZN1AcvT_IiEEv',
    '_ZN1Av2opEv',
  ]
  assert.deepEqual(demangled(kinds), filtered(kinds).slice(0, kinds.length))
  assert.deepEqual(decoder.undecoded, { failed: 0, refused: 0, late: 0, unavailable: 0 })
  assert.equal(decoder.starts, 1)
})

/** A type that holds two of the one before it, and so on: 2^levels parts. */
function doubling(levels: number): string {
  const reference = (index: number) => (index === 0 ? 'S_' : `S${(index - 1).toString(36).toUpperCase()}_`)
  let type = 'Pi'
  for (let i = 0; i < levels; i++) type = `F${type}${reference(i)}${reference(i)}E`
  return type
}

test('names that are made to take long, to become long or to take much of the stack stay as they are', () => {
  const names = [
    `_Z1f${doubling(60)}`,
    // The library looks for a parameter pack in all of it, and writes nothing meanwhile.
    `_Z1fIiEvDp${doubling(60)}`,
    `_Z1fIJEEvDp${doubling(60)}`,
    `_Z1f${'P'.repeat(4000)}i`,
    `_Z1fIX${'ng'.repeat(2000)}Li1EEEvv`,
    `_Z1f${'1AI'.repeat(1200)}i${'E'.repeat(490)}`,
    `_Z1f${'F'.repeat(2000)}i${'E'.repeat(2000)}`,
    `_Z${'1'.repeat(4094)}`,
    `_ZN3foo3barEv${'x'.repeat(5000)}`,
    // Templates times scopes, 16 bytes each.
    `_Z1fIiEv${'1AIiE'.repeat(560)}${'RT_'.repeat(420)}`,
  ]
  assert.deepEqual(demangled(names), names)
  assert.deepEqual(demangled(['_Z1av']), ['a()'])
  assert.deepEqual(decoder.undecoded, { failed: 0, refused: 0, late: 0, unavailable: 0 })
})

test('a name that never ends costs itself alone, and a file or an owner with many of them all of its names', () => {
  const own = new Decoder()
  const endless = (i: number) => `_ZN${String(i).length + 1}A${i}cvT_${'IT_'.repeat(60)}${'E'.repeat(61)}`
  const ask = (count: number, file: string, owner: string) => {
    const names = Array.from({ length: count }, (_, i) => [
      endless(i),
      `_Z${String(i).length + 1}a${i}v`,
    ]).flat()
    return [names, own.demangle(names.map(name => ({ name, origin: { file, owner } })))] as const
  }
  const [first, found] = ask(2, '1:1', '1:1')
  assert.deepEqual(found, [first[0], 'a0()', first[2], 'a1()'])
  assert.deepEqual(own.undecoded, { failed: 2, refused: 0, late: 0, unavailable: 0 })
  assert.equal(own.fault, '')

  // The third ends the file, and 16 of any files their owner.
  const began = process.cpuUsage()
  for (let i = 2; i < 10; i++) ask(4, `1:${i}`, '1:1')
  assert.equal(own.undecoded.failed, 16)
  assert.deepEqual(ask(1, '1:99', '1:1')[1], ask(1, '1:99', '1:1')[0])
  assert.deepEqual(ask(1, '2:1', '2:1')[1][1], 'a0()')
  assert.ok(process.cpuUsage(began).user < 10e6)
  own.close()
})

test('whatever bytes a name has, there is an answer, and the next name has its own', {
  timeout: 120_000,
}, () => {
  const tokens =
    'S_ S0_ S1_ St Sa Ss T_ T0_ Dp DpT_ J E I F N X sp fl flpl frpl P 1A v i L sZ Li1E DT Z cv Ul E_ R K M D0 C1 A3_'.split(
      ' ',
    )
  let seed = 1
  const below = (limit: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return (seed >>> 8) % limit
  }
  const asked = Array.from({ length: soak ? 500_000 : 20_000 }, (_, i) => {
    let name = '_Z1fI'
    for (let k = below(200); k > 0; k--) name += tokens[below(tokens.length)]
    return i % 100 === 0 ? '_Z1av' : name
  })
  for (let at = 0; at < asked.length; at += 1000) {
    const names = asked.slice(at, at + 1000)
    // Each of a file of its own: some may never end.
    const found = decoder.demangle(
      names.map((name, i) => ({ name, origin: { file: `f${at + i}`, owner: `o${at + i}` } })),
    )
    found.forEach((name, i) => {
      assert.ok(name.length > 0 && name.length <= 4096)
      if (names[i] === '_Z1av') assert.equal(name, 'a()')
    })
  }
})

function unpacked(packed: Uint8Array, most: number, by = decoder): Buffer {
  const fd = by.unpack(packed, most, origin)
  try {
    const bytes = Buffer.alloc(fstatSync(fd).size)
    readSync(fd, bytes, 0, bytes.length, 0)
    return bytes
  } finally {
    closeSync(fd)
  }
}

test('what xz compressed is unpacked, up to a limit', () => {
  const pack = (input: Buffer, ...options: string[]) =>
    execFileSync('xz', ['-c', ...options], { input, maxBuffer: 1 << 28 })
  for (const input of [
    Buffer.alloc(0),
    Buffer.from('a'),
    Buffer.alloc(20_000_000, 'x'),
    randomBytes(300_000),
  ])
    assert.ok(unpacked(pack(input), 1 << 25).equals(input))
  const packed = pack(Buffer.alloc(1_000_000, 'abc'))
  assert.equal(unpacked(packed, 1_000_000).length, 1_000_000)
  const check = (bytes: Buffer, most: number, want: RegExp) =>
    assert.throws(
      () => unpacked(bytes, most),
      (error: Error) => error instanceof DecodeError && want.test(error.message),
    )
  check(packed, 999_999, /too large/)
  check(packed.subarray(0, packed.length - 1), 1 << 25, /not valid xz data/)
  check(Buffer.from('no xz'), 1 << 25, /not valid xz data/)
  check(Buffer.alloc(0), 1 << 25, /unpack/)
  const flipped = Buffer.from(packed)
  flipped[40]! ^= 1
  check(flipped, 1 << 25, /not valid xz data/)
  // Its dictionary alone takes 64 MiB.
  check(pack(randomBytes(100), '--lzma2=dict=64MiB'), 1 << 25, /too much memory/)
  assert.deepEqual(demangled(['_Z1av']), ['a()'])
})

test('it has no rights, no files, one thread and little memory', () => {
  demangled(['_Z1av'])
  const [pid, ...others] = children()
  assert.deepEqual(others, [])
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?) *$`, 'm').exec(status)?.[1]
  assert.deepEqual(
    ['CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Threads'].map(name =>
      Number(`0x${field(name)}`),
    ),
    [0, 0, 0, 0, 1, 2, 1],
  )
  if (process.getuid?.() === 0) {
    assert.deepEqual(field('Uid')?.split('\t'), ['65534', '65534', '65534', '65534'])
    assert.deepEqual([Number(`0x${field('CapBnd')}`), field('Groups')], [0, ''])
  }
  assert.ok(Number.parseInt(field('VmSize')!, 10) <= 65_536)
  // Those of its channel are all that it has, and it can have no others.
  const limits = readFileSync(`/proc/${pid}/limits`, 'utf8')
  for (const name of ['Max open files', 'Max file size', 'Max processes', 'Max core file size'])
    assert.match(limits, new RegExp(`^${name} +0 +0 `, 'm'))
  assert.match(limits, /^Max cpu time +60 +60 /m)
  if (process.getuid?.() === 0) assert.deepEqual(readdirSync(`/proc/${pid}/fd`).sort(), ['0', '1'])
})

test('a call that it does not need ends it', () => {
  const calls: readonly [call: string, signal: string | null][] = [
    ['0', null],
    ['write(1, "", 0)', null],
    ['write(2, "", 0)', 'SIGSYS'],
    ['read(3, 0, 0)', 'SIGSYS'],
    ['syscall(SYS_getpid)', 'SIGSYS'],
    ['syscall(SYS_mmap, 0, 4096, 7, 34, -1, 0)', 'SIGSYS'],
    ['syscall(SYS_socket, 1, 1, 0)', 'SIGSYS'],
    ['syscall(SYS_clone, 17, 0, 0, 0, 0)', 'SIGSYS'],
    ['syscall(SYS_openat, -100, "/", 0)', 'SIGSYS'],
    ['syscall(SYS_execve, "/bin/true", 0, 0)', 'SIGSYS'],
    ['syscall(SYS_setitimer, 0, 0, 0)', 'SIGSYS'],
  ]
  const source = join(scratch, 'calls.c')
  const program = join(scratch, 'calls')
  const cases = calls.map(([call], index) => `case ${index}: (void)!${call}; break;`).join('\n')
  writeFileSync(
    source,
    `#define _GNU_SOURCE\n#include "confine.h"\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <unistd.h>
int main(int n, char **words) {
  int which = atoi(words[n - 1]);
  if (!confine()) _exit(9);
  switch (which) {
  ${cases}
  }
  _exit(0);
}`,
  )
  const decode = join(root, 'native/decode')
  execFileSync('gcc', ['-static-pie', `-I${decode}`, '-o', program, source, join(decode, 'confine.c')])
  calls.forEach(([call, want], index) => {
    const { status, signal } = spawnSync(program, [String(index)], { stdio: 'ignore' })
    assert.deepEqual([status, signal], want === null ? [0, null] : [null, want], call)
  })
})

test('a program that is away, ends or writes nonsense leaves names as they are, and is tried again later', () => {
  for (const [program, want] of [
    [undefined, /svc-decode is not installed/],
    ['/nowhere/it', /cannot run/],
    ['/bin/true', /cannot run/],
    // It says what it was asked, as if that were the name.
    ['/bin/cat', /unexpected output/],
  ] as const) {
    const own = new Decoder({ program })
    assert.deepEqual(demangled(['_Z1av', '_Z1bv'], own), ['_Z1av', '_Z1bv'])
    assert.match(own.fault, want)
    assert.equal(own.undecoded.unavailable, 2)
    const { starts } = own
    assert.deepEqual(demangled(['_Z1av'], own), ['_Z1av'])
    assert.throws(() => own.unpack(Buffer.alloc(10), 10, origin), DecodeError)
    assert.equal(own.starts, starts)
    own.close()
  }
})

test('one that was killed is started again, and is not left behind', async () => {
  demangled(['_Z1av'])
  const [pid] = children()
  process.kill(pid!, 'SIGKILL')
  assert.deepEqual(demangled(['_Z1av'], decoder, { file: '9:9', owner: '9:9' }), ['_Z1av'])
  assert.deepEqual(demangled(['_Z1bv']), ['b()'])
  decoder.close()
  await until('no child is left', 20_000, () => children().length === 0)
})

test('a thread that is ended takes its decoder and its descriptors along', async () => {
  const held = readdirSync('/proc/self/fd').length
  const file = join(import.meta.dirname, 'decoder.ts')
  const code = `import(${JSON.stringify(file)}).then(({ Decoder }) => {
    const decoder = new Decoder()
    decoder.demangle([{ name: '_Z1av', origin: { file: '', owner: '' } }])
    require('node:worker_threads').parentPort.postMessage(decoder.starts)
    for (;;);
  })`
  const worker = new Worker(code, { eval: true })
  const started = await new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  assert.equal(started, 1)
  assert.equal(children().length, 1)
  await worker.terminate()
  assert.deepEqual(children(), [])
  await until('its descriptors are closed', 20_000, () => readdirSync('/proc/self/fd').length <= held)
})
