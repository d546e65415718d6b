// owns: process
// What is made for 64-bit ARM on this machine: it is whole, and runs under emulation as far as that goes.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { stageArm64 } from '../../tools/package/arm64.ts'
import { writeImage } from '../../tools/package/image.ts'
import { root } from '../../tools/package/release.ts'
import { writePackages } from '../../tools/package/write.ts'
import { runSvc, startSvc, withoutEmulation } from '../helpers/arm64-emulation.ts'
import { unpackImage } from '../helpers/image-content.ts'
import { freePort, until } from '../helpers/program.ts'

test('packages and image for 64-bit ARM are made here, and run under emulation', {
  skip: withoutEmulation,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-arm64-test-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const staged = await stageArm64(join(directory, 'root'), 1_790_000_000)
  const written = writeImage({ ...staged, directory, effort: 'fast' })
  const packages = writePackages(staged, directory, 'fast')
  const config = unpackImage(written, join(directory, 'taken apart'))
  const image = join(directory, 'taken apart/root')
  const dist = join(image, 'usr/lib/svc/dist')

  await t.test('all say which processor they are for', () => {
    assert.equal(config.architecture, 'arm64')
    const deb = packages.find(file => file.endsWith('_arm64.deb'))!
    const told = spawnSync('dpkg-deb', ['--field', deb, 'Architecture'], { encoding: 'utf8' }).stdout
    assert.equal(told, 'arm64\n')
    for (const name of [
      'svc.node',
      'svc-probe',
      'svc-decode',
      '../bin/svc',
      '../runtime/bin/node',
      'libbpf.so.1',
    ]) {
      const { stdout } = spawnSync('readelf', ['--file-header', join(dist, name)], { encoding: 'utf8' })
      assert.match(stdout, /Machine: +AArch64/, name)
    }
  })

  await t.test('BPF objects know the registers of this processor, and of no other', () => {
    const objects = objectsIn(dist)
    assert.deepEqual(objects.sort(), objectsIn(join(root, 'dist')).sort())
    let withRegisters = 0
    for (const name of objects) {
      const args = ['btf', 'dump', 'file', join(dist, name), 'format', 'raw']
      const { status, stdout } = spawnSync('bpftool', args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
      assert.equal(status, 0, name)
      const fields = [...stdout.matchAll(/STRUCT '(?:user_)?pt_regs(?:___\w+)?'.*\n((?:\t.*\n)*)/g)].map(
        ([, each]) => each!,
      )
      if (fields.length > 0) withRegisters++
      for (const each of fields) assert.doesNotMatch(each, /'(ip|di|orig_ax)'/, name)
    }
    assert.ok(withRegisters >= 3, `${withRegisters} objects read registers`)
  })

  await t.test('commands run', () => {
    const version = runSvc(image, ['version'])
    assert.equal(version.status, 0, version.out)
    const valid = runSvc(image, ['validate'])
    assert.match(valid.out, /configuration is valid/)
  })

  await t.test('the addon loads with its libraries, and the emulation has no eBPF', () => {
    const { out } = runSvc(image, ['doctor', 'traces', '--json'])
    const { groups } = JSON.parse(out) as {
      readonly groups: readonly { readonly checks: readonly Check[] }[]
    }
    const states = new Map(groups.flatMap(({ checks }) => checks.map(({ name, state }) => [name, state])))
    assert.equal(states.get('native addon'), 'ok')
    assert.equal(states.get('eBPF programs'), 'missing')
  })

  await t.test('host metrics are served', async () => {
    const port = await freePort()
    const child = startSvc(image, ['node-exporter', `--web.listen-address=127.0.0.1:${port}`])
    const ended = new Promise(resolve => child.once('close', resolve))
    try {
      let text = ''
      await until('they are served', 120_000, async () => {
        text = await fetch(`http://127.0.0.1:${port}/metrics`).then(
          answer => answer.text(),
          () => '',
        )
        return text.includes('node_cpu_seconds_total')
      })
      assert.match(text, /node_uname_info\{[^}]*machine="aarch64"/)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
  })
})

function objectsIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.bpf.o'))
}

interface Check {
  readonly name: string
  readonly state: string
}
