// owns: load
// Parsers in C under libFuzzer, with the sanitizers of addresses and of undefined behaviour: those of svc-decode with the
// library that demangles, the requests of svc-probe, and what the programs of the kernel share with user space. FUZZ_INPUTS: how many in all.

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { debianProgram } from './helpers/debian-program.ts'
import { onlyInSoak } from './helpers/soak.ts'

const root = join(import.meta.dirname, '..')
const inputs = Number(process.env.FUZZ_INPUTS ?? 1e8)
const longest = 1024
const folder = mkdtempSync(join(tmpdir(), 'svc-fuzz-'))
after(() => rmSync(folder, { recursive: true }))

const sanitized = '-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -O1 -g'.split(
  ' ',
)
/** The kernel's machine reads at any address, and clang knows attributes of its records there alone. */
const kernel = [
  ...'-fno-sanitize=alignment -D__TARGET_ARCH_x86 -DCAPTURE=1024 -Wno-unknown-attributes'.split(' '),
  ...['-Wno-ignored-attributes', `-I${join(root, 'bpf/include')}`],
]

const skip =
  onlyInSoak || (canFuzz() ? false : 'clang has no libFuzzer here (Debian package libclang-rt-dev)')

function canFuzz(): boolean {
  const source = 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return 0; }'
  const args = ['-fsanitize=fuzzer,address', '-x', 'c', '-', '-o', join(folder, 'can')]
  return spawnSync('clang', args, { input: source }).status === 0
}

function clang(...args: readonly string[]): void {
  execFileSync('clang', args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

/** Runs a fuzzer over as many inputs. What it says of a fault is the failure. */
async function fuzz(
  name: string,
  runs: number,
  seeds: readonly Uint8Array[],
  words: readonly string[],
  most = longest,
) {
  const corpus = join(folder, `${name}.corpus`)
  const kept = join(root, 'build/fuzz')
  const wordsFile = join(folder, `${name}.words`)
  mkdirSync(corpus)
  mkdirSync(kept, { recursive: true })
  seeds.forEach((seed, i) => {
    writeFileSync(join(corpus, String(i)), seed)
  })
  writeFileSync(wordsFile, words.map(word => `"${word}"\n`).join(''))
  const options = [
    `-runs=${Math.round(runs)}`,
    `-max_len=${most}`,
    `-dict=${wordsFile}`,
    '-print_final_stats=1',
  ]
  // Frames of a sanitizer are large, and names nest.
  const command = ['--stack=268435456', join(folder, name), ...options, '-verbosity=0', '-timeout=60']
  const child = spawn('prlimit', [...command, `-artifact_prefix=${kept}/${name}-`, corpus], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ASAN_OPTIONS: 'detect_leaks=0' },
  })
  let said = ''
  child.stderr.on('data', (bytes: Buffer) => {
    said = (said + bytes.toString('latin1')).slice(-20_000)
  })
  const status = await new Promise(resolve => child.once('close', resolve))
  assert.equal(status, 0, said)
  assert.ok(Number(/executed_units: (\d+)/.exec(said)?.[1]) >= Math.round(runs), said)
  return Number(/average_exec_per_sec: +(\d+)/.exec(said)?.[1])
}

test('the recognition of protocols', { skip }, async context => {
  const source = join(import.meta.dirname, 'fixtures/fuzz/classify.c')
  clang(...sanitized, '-fsanitize=fuzzer', ...kernel, source, '-o', join(folder, 'classify'))
  const heads = [
    'GET / HTTP/1.1\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '*1\r\n$4\r\nPING\r\n',
    'AMQP\0\0\t\x01',
    'get a\r\n',
  ]
  const seeds = heads.map(head => Buffer.from(`\0\0\0\0\0\0\0\0${head}`, 'latin1'))
  context.diagnostic(
    `${await fuzz('classify', inputs * 0.35, seeds, ['HTTP/', 'AMQP', 'PRI ', 'CONNECT', 'INFO '])} a second`,
  )
})

test('heads and chunks of HTTP/1', { skip }, async context => {
  const source = join(import.meta.dirname, 'fixtures/fuzz/http1.c')
  clang(...sanitized, '-fsanitize=fuzzer', ...kernel, source, '-o', join(folder, 'http1'))
  const seeds = [
    '\x81GET / HTTP/1.1\r\nContent-Length: 5\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n',
    '\x80HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
    '\x825;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n',
  ].map(text => Buffer.from(text, 'latin1'))
  const words = [
    'Content-Length:',
    'Transfer-Encoding:',
    'chunked',
    'traceparent:',
    'HTTP/1.1',
    '\\x0d\\x0a',
    'b3:',
  ]
  context.diagnostic(`${await fuzz('http1', inputs * 0.3, seeds, words)} a second`)
})

test('requests of svc-probe', { skip }, async context => {
  const source = join(import.meta.dirname, 'fixtures/fuzz/probe.c')
  clang(...sanitized, '-fsanitize=fuzzer', source, '-o', join(folder, 'probe'))
  // The last has a longer path than there is room for.
  const lines = ['1 S 0 2f\n', '18446744073709551615 R 65536 2f00\n', `2 P 1 ${'61'.repeat(4100)}\n`]
  const seeds = lines.map(line => Buffer.from(line))
  const words = [' P ', ' S ', '-1', '2f', '\\x0a']
  context.diagnostic(`${await fuzz('probe', inputs * 0.05, seeds, words, 2 ** 14)} a second`)
})

/** Objects of the library with sanitizers in them, from Debian's sources of binutils; none where they cannot be had. */
function sanitizedLibrary(): string[] {
  const sources = debianProgram({ package: 'binutils-source', path: 'usr/src/binutils' })
  const archive = sources && readdirSync(sources).find(name => /^binutils-.*\.tar\.xz$/.test(name))
  if (sources === undefined || archive === undefined) return []
  const at = join(folder, 'library')
  mkdirSync(at)
  const wanted = [
    '*/libiberty/cp-dem*.[ch]',
    '*/include/ansidecl.h',
    '*/include/libiberty.h',
    '*/include/demangle.h',
  ]
  execFileSync('tar', [
    '-x',
    '-J',
    '-C',
    at,
    '--strip-components=1',
    '--wildcards',
    '-f',
    join(sources, archive),
    ...wanted,
  ])
  const has = ['STDLIB_H', 'STRING_H', 'LIMITS_H', 'ALLOCA_H'].map(name => `-DHAVE_${name}`)
  const counted = ['-include', 'stdlib.h', '-Dmalloc=tried_malloc', '-Dfree=tried_free']
  return ['cp-demangle', 'cp-demint'].map(name => {
    const object = join(at, `${name}.o`)
    clang(
      ...[
        '-fsanitize=fuzzer-no-link,address',
        '-O1',
        '-g',
        '-w',
        ...has,
        ...counted,
        `-I${join(at, 'include')}`,
      ],
      ...['-c', join(at, 'libiberty', `${name}.c`), '-o', object],
    )
    return object
  })
}

test('requests, names and packed files of svc-decode', { skip }, async context => {
  const decode = (name: string) => join(root, 'native/decode', name)
  const demangle = join(folder, 'demangle.o')
  const swapped = [
    'cplus_demangle_print_callback=tried_print',
    'cplus_demangle_v3_components=tried_components',
  ]
  clang(
    ...[...sanitized, ...swapped.map(each => `-D${each}`), '-include', 'setjmp.h', '-Dlongjmp=tried_longjmp'],
    ...['-c', decode('demangle.c'), '-o', demangle],
  )
  const library = sanitizedLibrary()
  context.diagnostic(library.length > 0 ? 'libiberty with sanitizers' : 'libiberty as it is installed')
  clang(
    ...[...sanitized, '-fsanitize=fuzzer', join(import.meta.dirname, 'fixtures/fuzz/decode.c')],
    ...[decode('requests.c'), decode('unpack.c'), demangle, ...library, '-l:libiberty.a', '-llzma'],
    ...['-o', join(folder, 'decode')],
  )
  const listed = execFileSync('nm', [process.execPath], { maxBuffer: 1 << 30, encoding: 'utf8' })
  const names = [...new Set(listed.match(/(?<= _Z)[^\s@]+/g))].filter((_, i) => i % 200 === 0)
  const packed = execFileSync('xz', ['-c', '-0'], { input: Buffer.alloc(3000, 'function') })
  const seeds = [
    ...names.map(name => Buffer.from(`\0${name.slice(0, longest - 1)}`, 'latin1')),
    Buffer.concat([Buffer.from([2]), packed]),
    Buffer.concat([Buffer.from([3, 1, 0, 0, 0, 6, 0, 0, 0]), Buffer.from('_Z1av\0')]),
  ]
  const words =
    'S_ S0_ St Sa T_ T0_ DpT_ cvT_ IT_ sp fl fL flpl Li1E DT Ul E_ C1 D1 A3_ J NK dtcv _Z N3 I E X L'.split(
      ' ',
    )
  context.diagnostic(`${await fuzz('decode', inputs * 0.3, seeds, words)} a second`)
})
