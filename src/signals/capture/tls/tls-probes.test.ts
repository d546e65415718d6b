// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { withoutBpf } from '../../../../test/helpers/compile-bpf.ts'
import { until } from '../../../../test/helpers/program.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { Loader, TlsLab } from '../../../../test/helpers/tls-lab.ts'
import { tlsFunctions } from './libraries.ts'
import { oneForAll } from './programs.ts'
import { TlsProbes, type TlsProbesOptions } from './tls-probes.ts'

const skip = withoutBpf
let lab: TlsLab
let probes: TlsProbes
let attached: boolean

function make(options: Partial<TlsProbesOptions> = {}): TlsProbes {
  const { procDir, rootDir } = lab
  attached = false
  probes = new TlsProbes(lab.object, {
    log: silentLogger,
    programs: oneForAll,
    procDir,
    rootDir,
    selfPid: process.pid,
    setAttached: on => {
      attached = on
    },
    ...options,
  })
  return probes
}

beforeEach(() => {
  if (!skip) lab = new TlsLab()
})
afterEach(async () => {
  if (skip) return
  await probes.close()
  await lab.close()
})

const entered = (name: (typeof tlsFunctions)[number]) => lab.calls('entered', tlsFunctions.indexOf(name))
const returned = (name: (typeof tlsFunctions)[number]) => lab.calls('returned', tlsFunctions.indexOf(name))

test('the functions are numbered as the kernel side has them', { skip }, () => {
  make()
  const header = readFileSync(join(import.meta.dirname, '../../../../bpf/include/tls-call.h'), 'utf8')
  const [, body] = /enum svc_tls_function \{([^}]*)\}/.exec(header)!
  const names = [...body!.matchAll(/svc_tls_function_(\w+),/g)].map(([, name]) => name!)
  const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  assert.deepEqual(names.map(camel), [...tlsFunctions, 'count'])
})

test('a file is probed once, for those that map it before and after', { skip }, async () => {
  const path = lab.library('libssl.so.3')
  const first = await lab.loader()
  await first.ask(`load ${path}`)
  await make().scan()
  const second = await lab.loader()
  await second.ask(`load ${path}`)
  await probes.scan()
  const { dev, ino } = statSync(path)
  assert.deepEqual(
    probes.attachments().map(({ buildId: _, ...rest }) => rest),
    [
      {
        path,
        inode: `${dev}:${ino}`,
        library: 'openssl',
        symbols: ['SSL_read', 'SSL_write', 'SSL_free'],
        processes: 2,
        attached: true,
        reason: '',
      },
    ],
  )
  assert.ok(attached)
  for (const loader of [first, second]) {
    lab.watch(loader.pid)
    await loader.ask('call')
    assert.deepEqual([entered('read'), entered('write'), entered('free')], [1, 1, 1])
    assert.deepEqual([returned('read'), returned('write'), returned('free')], [1, 1, 0])
  }
})

test('a library that is loaded late is found when the process is noticed', { skip }, async () => {
  const path = lab.library('libssl-8f2c.so.1.1')
  const loader = await lab.loader()
  await make().scan()
  assert.deepEqual(probes.attachments(), [])
  await loader.ask(`load ${path}`)
  await probes.scan()
  assert.deepEqual(probes.attachments(), [], 'it is not due yet')
  probes.noticed(loader.pid)
  await probes.scan()
  assert.equal(probes.attachments()[0]!.processes, 1)
})

test('while svc takes too much CPU a process that is noticed waits longer, and is looked at all the same', {
  skip,
}, async () => {
  const loader = await lab.loader()
  const { lever } = make()
  await probes.scan()
  assert.ok(lever.costMs() > 0)
  while (lever.lower());
  assert.match(lever.effect, /checked for TLS libraries after 1\.6 s instead of 0\.1 s/)
  await loader.ask(`load ${lab.library('libssl.so.3')}`)
  const began = performance.now()
  probes.noticed(loader.pid)
  await until('it is looked at', 30_000, () => probes.attachments().length > 0)
  assert.ok(performance.now() - began >= 1500)
  while (lever.raise());
  assert.equal(lever.effect, '')
})

test('a file that nobody maps any more is let go, and found again', { skip }, async () => {
  const path = lab.library('libssl.so.3')
  const loader = await lab.loader()
  await loader.ask(`load ${path}`)
  await make({ lingerMs: 0 }).scan()
  assert.equal(probes.attachments().length, 1)
  await loader.ask('unload')
  probes.noticed(loader.pid)
  await probes.scan()
  assert.deepEqual(probes.attachments(), [])
  assert.equal(attached, false)
  await loader.ask(`load ${path}`)
  probes.noticed(loader.pid)
  await probes.scan()
  assert.ok(attached)
  await loader.close()
  await probes.scan()
  assert.deepEqual(probes.attachments(), [])
})

test('what does not look like the library is left alone, with the reason', { skip }, async () => {
  const broken = lab.library('libssl.so.1', 'BROKEN')
  const partial = lab.library('libssl.so.2', 'PARTIAL')
  const changed = lab.library('libssl.so.3')
  for (const path of [broken, partial, changed]) {
    const loader = await lab.loader()
    await loader.ask(`load ${path}`)
    if (path === changed) await loader.ask('patch')
  }
  await make().scan()
  const reasons = new Map(probes.attachments().map(({ path, reason }) => [path, reason]))
  assert.match(
    reasons.get(broken)!,
    /^SSL_read: (the file itself has a breakpoint|the first bytes are not an instruction)/,
  )
  assert.equal(reasons.get(partial), 'function SSL_read not found')
  assert.match(reasons.get(changed)!, /^SSL_read: the memory of a process differs from the file/)
  assert.ok(probes.attachments().every(({ attached }) => !attached))
  assert.equal(attached, false)
})

test('a library that one process has patched is left alone, as a probe would end that process', {
  skip,
}, async () => {
  const path = lab.library('libssl.so.3')
  const patched = await lab.loader()
  await patched.ask(`load ${path}`)
  await patched.ask('patch')
  await make().scan()
  const other = await lab.loader()
  await other.ask(`load ${path}`)
  probes.noticed(other.pid)
  await probes.scan()
  const [found] = probes.attachments()
  assert.deepEqual([found!.attached, found!.processes], [false, 2])
  assert.match(found!.reason, /differs from the file/)
})

test('a library of which a process maps but a piece as code is probed for the next one', {
  skip,
}, async () => {
  const path = lab.library('libssl.so.3')
  const source = `#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
  void *piece = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open("${path}", O_RDONLY), 0);
  puts(piece == MAP_FAILED ? "failed" : "ok");
  fflush(stdout);
  return getchar() > 0;
}
`
  const program = join(lab.directory, 'piece')
  execFileSync('gcc', ['-xc', '-', '-o', program], { input: source })
  const hostile = new Loader(program, lab.procDir)
  await hostile.started
  try {
    await make().scan()
    assert.match(probes.attachments()[0]!.reason, /^SSL_read: the process does not map this part as code$/)
    const other = await lab.loader()
    await other.ask(`load ${path}`)
    probes.noticed(other.pid)
    await probes.scan()
    assert.deepEqual(
      probes.attachments().map(({ attached, processes, reason }) => [attached, processes, reason]),
      [[true, 2, '']],
    )
  } finally {
    await hostile.close()
  }
})

test('processes that are denied are told to the kernel, and attach nothing', { skip }, async () => {
  const path = lab.library('libssl.so.3')
  const loader = await lab.loader()
  await loader.ask(`load ${path}`)
  await make({ denied: each => each.endsWith('/loader') }).scan()
  assert.deepEqual(probes.attachments(), [])
  const denied = lab.object.map('tls_denied')
  const key = new Uint8Array(Uint32Array.of(loader.pid).buffer)
  assert.ok(lab.native.mapLookup(denied, key, new Uint8Array(1)))
  await loader.close()
  await probes.scan()
  assert.ok(!lab.native.mapLookup(denied, key, new Uint8Array(1)))
})

test('a process with 60,000 mappings is read in slices, and its library found behind them', {
  skip,
}, async () => {
  const path = lab.library('libssl.so.3')
  const loader = await lab.loader()
  await loader.ask('map 60000')
  await loader.ask(`load ${path}`)
  make()
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  await probes.scan()
  clearInterval(timer)
  assert.equal(probes.attachments()[0]!.attached, true)
  // Whoever reads 4 MB of the kernel's text at once lets nobody else have a turn.
  assert.ok(turns >= 3, `${turns} turns`)
})

test('this process is never looked at', { skip }, async () => {
  const loader = await lab.loader()
  await loader.ask(`load ${lab.library('libssl.so.3')}`)
  await make({ selfPid: loader.pid }).scan()
  assert.deepEqual(probes.attachments(), [])
})

test('a library of the host is probed before anybody maps it, but not one that is denied', {
  skip,
}, async () => {
  const { mkdirSync, renameSync } = await import('node:fs')
  const directory = join(lab.rootDir, 'usr/lib64')
  mkdirSync(directory, { recursive: true })
  const path = join(directory, 'libssl.so.3')
  renameSync(lab.library('libssl.so.3'), path)
  renameSync(lab.library('libssl.so.9'), join(directory, 'libssl.so.9'))
  await make({ lingerMs: 0, denied: each => each.endsWith('.9') }).scan()
  await probes.scan()
  const states = probes
    .attachments()
    .map(({ attached, processes, reason }) => ({ attached, processes, reason }))
  assert.deepEqual(states, [
    { attached: true, processes: 0, reason: '' },
    { attached: false, processes: 0, reason: 'excluded by the configuration' },
  ])
  const loader = await lab.loader()
  await loader.ask(`load ${path}`)
  lab.watch(loader.pid)
  await loader.ask('call')
  assert.equal(entered('write'), 1)
})

test('after the end nothing is probed, and nothing more is looked at', { skip }, async () => {
  const path = lab.library('libssl.so.3')
  const loader = await lab.loader()
  await loader.ask(`load ${path}`)
  await make().scan()
  await Promise.all([probes.close(), probes.close()])
  probes.noticed(loader.pid)
  lab.watch(loader.pid)
  await loader.ask('call')
  assert.equal(entered('write'), 0)
  assert.equal(attached, false)
})
