import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { NetworkNamespace, withoutNamespaces } from '../../test/helpers/network-namespace.ts'
import { HostFiles } from './host.ts'

const openFiles = () => readdirSync('/proc/self/fd').length

function hostAt(t: TestContext, paths: { readonly proc?: string; readonly sys?: string }): HostFiles {
  const host = new HostFiles({
    procfs: paths.proc ?? '/proc',
    sysfs: paths.sys ?? '/sys',
    rootfs: '/',
    udev: '/run/udev/data',
  })
  t.after(() => host.close())
  return host
}

function directory(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'svc-host-'))
  t.after(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('files of the kernel stay open until nobody wants them, and tell what is there now', t => {
  const before = openFiles()
  const host = hostAt(t, {})
  const first = host.proc.text('uptime')
  host.sys.text('kernel/mm/transparent_hugepage/enabled')
  assert.equal(openFiles(), before + 2)
  for (let i = 0; i < 1000; i++) host.proc.number('sys/kernel/pid_max')
  assert.equal(openFiles(), before + 3)
  while (readFileSync('/proc/uptime', 'utf8') === first);
  assert.notEqual(host.proc.text('uptime'), first)
  host.sweep()
  host.proc.text('uptime')
  host.sweep()
  assert.equal(openFiles(), before + 1)
  host.close()
  assert.equal(openFiles(), before)
  assert.match(host.proc.text('uptime'), /^\d/)
  assert.equal(openFiles(), before)
})

test('a process that may open few files keeps few', () => {
  const script = `
    import { readdirSync } from 'node:fs'
    const { HostFiles } = await import(${JSON.stringify(join(import.meta.dirname, 'host.ts'))})
    const { sys } = new HostFiles({ procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' })
    const before = readdirSync('/proc/self/fd').length
    for (const name of sys.list('module')) sys.find('module/' + name + '/uevent')
    for (const name of sys.list('kernel/mm/transparent_hugepage')) sys.find('kernel/mm/transparent_hugepage/' + name)
    for (const name of sys.list('class/net/lo/statistics')) sys.find('class/net/lo/statistics/' + name)
    console.log(readdirSync('/proc/self/fd').length - before)`
  const limited = [
    '-c',
    'ulimit -n 64; exec "$0" --no-warnings --input-type=module -e "$1"',
    process.execPath,
    script,
  ]
  assert.equal(execFileSync('sh', limited, { encoding: 'utf8' }).trim(), '16')
})

test('other files are opened each time', t => {
  const root = directory(t)
  writeFileSync(join(root, 'a'), ' 1 \n')
  const before = openFiles()
  const host = hostAt(t, { proc: root })
  assert.equal(host.proc.find('a'), '1')
  rmSync(join(root, 'a'))
  assert.equal(host.proc.find('a'), undefined)
  assert.equal(openFiles(), before)
})

test('what is not there, not a file or has no end is no reason to wait', t => {
  const root = directory(t)
  mkdirSync(join(root, 'directory'))
  execFileSync('mkfifo', [join(root, 'pipe')])
  const { proc, root: whole } = hostAt(t, { proc: root })
  assert.equal(proc.find('none'), undefined)
  assert.equal(proc.find('directory'), undefined)
  assert.equal(proc.find('pipe'), undefined)
  assert.deepEqual([proc.list('none'), proc.list('pipe'), proc.directories('.')], [[], [], ['directory']])
  assert.throws(() => whole.text('dev/zero'), /longer than 67108864 bytes/)
  writeFileSync(join(root, 'word'), 'x')
  assert.throws(() => proc.number('word'), /cannot read .*\/word: not a number/)
})

test('a device of the network that took the name of another one is read anew', {
  skip: withoutNamespaces,
}, t => {
  const space = new NetworkNamespace(t, ['link add left type veth peer name right'])
  const script = `
    const { execFileSync } = await import('node:child_process')
    const { HostFiles } = await import(${JSON.stringify(join(import.meta.dirname, 'host.ts'))})
    const { sys } = new HostFiles({ procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' })
    const indexes = () => ['left', 'right'].map(name => sys.number('class/net/' + name + '/ifindex'))
    const before = indexes()
    for (const [from, to] of [['left', 'other'], ['right', 'left'], ['other', 'right']])
      execFileSync('ip', ['link', 'set', from, 'name', to])
    // A name is believed for so long.
    await new Promise(resolve => setTimeout(resolve, 150))
    const after = indexes()
    execFileSync('ip', ['link', 'del', 'left'])
    await new Promise(resolve => setTimeout(resolve, 150))
    console.log(JSON.stringify({ before, after, gone: indexes() }))`
  const { before, after, gone } = space.run(script) as Record<string, readonly number[]>
  assert.deepEqual(after, before!.toReversed())
  assert.deepEqual(gone, [null, null])
})
