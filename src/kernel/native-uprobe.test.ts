// owns: host
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, test } from 'node:test'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { TlsLab } from '../../test/helpers/tls-lab.ts'
import { readElfSymbols } from '../foundation/lib/elf-symbols.ts'

const skip = withoutBpf
let lab: TlsLab

beforeEach(() => {
  if (!skip) lab = new TlsLab()
})
afterEach(async () => {
  if (!skip) await lab.close()
})

async function offsetsOf(path: string): Promise<number[]> {
  const { functions } = await readElfSymbols(path, ['SSL_read', 'SSL_write'])
  return ['SSL_read', 'SSL_write'].map(name => functions.get(name)!.offset)
}

test('programs at functions see every call and return, with the cookies of their places', {
  skip,
}, async () => {
  const { native, object } = lab
  const path = lab.library('libssl.so.3')
  const offsets = await offsetsOf(path)
  const before = await lab.loader()
  await before.ask(`load ${path}`)
  const enter = await native.uprobeAttach(object.handle, 'svc_tls_enter', path, offsets, [3, 5], false)
  const leave = await native.uprobeAttach(object.handle, 'svc_tls_return', path, offsets, [7, 9], true)
  const later = await lab.loader()
  await later.ask(`load ${path}`)
  for (const loader of [before, later]) {
    lab.watch(loader.pid)
    for (let i = 0; i < 10; i++) await loader.ask('call')
    for (const cookie of [3, 5]) assert.equal(lab.calls('entered', cookie), 10)
    for (const cookie of [7, 9]) assert.equal(lab.calls('returned', cookie), 10)
  }
  await native.uprobeDetach(enter)
  await native.uprobeDetach(enter)
  await native.uprobeDetach(leave)
  lab.watch(later.pid)
  await later.ask('call')
  assert.equal(lab.calls('entered', 3) + lab.calls('returned', 7), 0)
})

test('a place that the kernel refuses is an error that names the program and the file', {
  skip,
}, async () => {
  const { native, object } = lab
  const path = lab.library('libssl.so.3')
  const attach = (program: string, file: string, offsets: number[]) =>
    native.uprobeAttach(object.handle, program, file, offsets, offsets, false)
  await assert.rejects(attach('svc_tls_enter', `${path}.none`, [64]), {
    code: 'ENOENT',
    message: /^cannot attach program 'svc_tls_enter' to .*libssl\.so\.3\.none: no such file/,
  })
  await assert.rejects(
    attach('svc_tls_enter', path, [2 ** 40]),
    /^Error: cannot attach program 'svc_tls_enter' to/,
  )
  assert.throws(() => attach('svc_none', path, [64]), { code: 'ENOENT' })
})

test('arguments that do not fit are a TypeError', { skip }, () => {
  const { native, object } = lab
  const wrong = (path: unknown, offsets: unknown, cookies: unknown, atReturn: unknown, what: RegExp) =>
    assert.throws(
      () =>
        native.uprobeAttach(
          object.handle,
          'svc_tls_enter',
          path as string,
          offsets as number[],
          cookies as number[],
          atReturn as boolean,
        ),
      (error: Error) => error instanceof TypeError && what.test(error.message),
    )
  wrong('', [1], [1], false, /the path must be a string of 1 to 4095 bytes/)
  wrong('x'.repeat(4096), [1], [1], false, /the path must be/)
  wrong('a\0b', [1], [1], false, /zero byte/)
  wrong('a', [], [], false, /the offsets must be an array of 1 to 64 numbers/)
  wrong('a', Array(65).fill(1), [1], false, /the offsets must be/)
  wrong('a', 5, [1], false, /the offsets must be/)
  wrong('a', [-1], [1], false, /the offsets must be a whole number/)
  wrong('a', [1.5], [1], false, /the offsets must be a whole number/)
  wrong('a', [1], ['x'], false, /the cookies must be a whole number/)
  wrong('a', [1, 2], [1], false, /as many cookies as offsets/)
  wrong('a', [1], [1], 1, /must be true or false/)
  assert.throws(() => native.uprobeDetach({} as never), TypeError)
  assert.throws(() => native.uprobePrepare(object.handle, 'svc_tls_enter'), /must not be loaded yet/)
})

test('what is attached outlives a closed object, and is let go by its handle', { skip }, async () => {
  const { native, object } = lab
  const path = lab.library('libssl.so.3')
  const [offset] = await offsetsOf(path)
  const uprobe = await native.uprobeAttach(object.handle, 'svc_tls_enter', path, [offset!], [0], false)
  object.close()
  assert.throws(() => native.uprobeAttach(object.handle, 'svc_tls_enter', path, [offset!], [0], false), {
    code: 'EBADF',
  })
  await native.uprobeDetach(uprobe)
  assert.ok(existsSync(path))
})

test('many are let go at the same time, in threads, while the event loop goes on', { skip }, async () => {
  const { native, object } = lab
  const path = lab.library('libssl.so.3')
  const offsets = await offsetsOf(path)
  const attach = () => native.uprobeAttach(object.handle, 'svc_tls_enter', path, offsets, [3, 5], false)
  const uprobes = await Promise.all(Array.from({ length: 48 }, attach))
  const loader = await lab.loader()
  await loader.ask(`load ${path}`)
  lab.watch(loader.pid)
  await loader.ask('call')
  assert.equal(lab.calls('entered', 3), 48)
  let done = false
  const all = Promise.all(uprobes.map(uprobe => native.uprobeDetach(uprobe))).then(() => {
    done = true
  })
  // Whatever was asked for returned at once: the kernel cannot have let go of all of them by now.
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(done, false)
  // What is attached does not wait for what is let go.
  const late = await attach()
  assert.equal(done, false)
  await all
  lab.watch(loader.pid)
  await loader.ask('call')
  assert.equal(lab.calls('entered', 3), 1)
  await native.uprobeDetach(late)
})
