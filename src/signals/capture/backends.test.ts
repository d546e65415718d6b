// owns: host
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { nativeOrThrow } from '../../../test/helpers/native.ts'
import { type LoadedConfig, loadConfig } from '../../config/index.ts'
import { findAsset } from '../../kernel/assets.ts'
import { type BtfSection, readBtf } from '../../kernel/btf.ts'
import * as generated from '../../kernel/gen/sock.ts'
import { loadedPrograms } from '../../kernel/loaded.ts'
import { needs } from '../../kernel/needs.ts'
import { backends } from './index.ts'
import { sock } from './sock.ts'
import { SocketCapture } from './socket-capture.ts'

/** Maps that every back end's object has, since one class reads them. */
const shared = ['ring', 'red', 'counters', 'conns', '.bss', '.rodata']

const snake = (name: string) => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

function bytesOf(file: string): Uint8Array {
  const path = findAsset(file)
  assert.ok(path, `${file} was not built`)
  return new Uint8Array(readFileSync(path))
}

function configured(env: Record<string, string>): LoadedConfig {
  return loadConfig({ explicit: false, env, cwd: '/nonexistent', systemFile: '/nonexistent' })
}

/** Holds a table of offsets to the section of the object that it describes. */
function checkLayout(layout: Readonly<Record<string, number>>, section: BtfSection | undefined): void {
  assert.ok(section)
  assert.equal(layout.size, section.size)
  const fields = new Map(section.fields.map(field => [field.name, field]))
  for (const [name, value] of Object.entries(layout)) {
    const array = name.endsWith('Size') ? fields.get(snake(name.slice(0, -'Size'.length))) : undefined
    if (name === 'size') continue
    if (array !== undefined) assert.equal(value, array.size, name)
    else assert.equal(value, fields.get(snake(name))?.offset, name)
  }
}

test('every back end can be asked for by its name, and only once', () => {
  const names = backends.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  for (const name of names) {
    const { config, problems } = configured({ SVC_AGENT_EBPF_BACKEND: name })
    assert.deepEqual([config.agent.ebpf.backend, problems], [name, []])
  }
})

/** What else a capture tells. */
const ignored = { begin: () => {}, segment: () => {}, thread: () => {} }

for (const backend of backends) {
  test(`${backend.name}: its name, its summary and its needs are well formed`, () => {
    assert.match(backend.name, /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/)
    assert.match(backend.summary, /^[A-Z].*\.$/)
    assert.ok(backend.needs.length > 0)
    const tried = needs.map(({ name }) => name)
    for (const { name } of backend.needs) assert.ok(tried.includes(name), `svc doctor does not try ${name}`)
  })
}

for (const backend of [sock]) {
  test(`${backend.name}: its programs are listed`, () => {
    assert.ok(backend.programs.length > 0 && !backend.programs.includes(backend.bootstrap))
  })

  test(`${backend.name}: its objects rise in size and take the longest heads that can be asked for`, () => {
    const sizes = backend.objects.map(({ captureBytes }) => captureBytes)
    assert.deepEqual(
      sizes,
      sizes.toSorted((a, b) => a - b),
    )
    const asked = (bytes: number) => configured({ SVC_AGENT_EBPF_NETWORK_CAPTURE_BYTES: String(bytes) })
    assert.deepEqual(asked(sizes.at(-1)!).problems, [])
    assert.equal(asked(sizes.at(-1)! + 1).problems.length, 1)
  })

  for (const { file } of backend.objects) {
    test(`${backend.name}: ${file} has its programs, its iterator and the maps that are read`, () => {
      const native = nativeOrThrow()
      const object = native.objectOpen(bytesOf(file), backend.name)
      try {
        const programs = new Map(native.objectPrograms(object).map(({ name, section }) => [name, section]))
        assert.deepEqual(
          [...programs.keys()].toSorted(),
          [...backend.programs, ...backend.again, ...backend.uprobes, backend.bootstrap].toSorted(),
        )
        for (const name of programs.keys()) assert.match(name, /^svc_/)
        assert.match(programs.get(backend.bootstrap)!, /^iter\//)
        const maps = native.objectMaps(object).map(({ name }) => name.replace(/^.*(?=\.(bss|rodata)$)/, ''))
        for (const name of shared) assert.ok(maps.includes(name), name)
      } finally {
        native.objectClose(object)
      }
    })

    test(`${backend.name}: the layouts that TypeScript has are those of ${file}`, () => {
      const { sections, structs, enums } = readBtf(bytesOf(file))
      const section = (name: string) => sections.find(each => each.name === name)
      checkLayout(backend.layout.rodata, section('.rodata'))
      checkLayout(backend.layout.bss, section('.bss'))
      const struct = (name: string) => structs.find(each => each.name === name)
      for (const [name, layout] of Object.entries(generated)) {
        if (Array.isArray(layout)) {
          const values = enums.find(each => each.name === snake(name))!.values.map(value => value.name)
          const want = layout.map(value => `${snake(name)}_${value}`)
          assert.deepEqual(values.slice(0, want.length), want)
        } else if (name.startsWith('svc'))
          checkLayout(layout as Readonly<Record<string, number>>, struct(snake(name)))
      }
    })
  }

  test(`${backend.name}: each of its objects loads and attaches`, { skip: withoutBpf }, () => {
    for (const { captureBytes } of backend.objects) {
      const capture = new SocketCapture(
        nativeOrThrow(),
        backend,
        {
          ringBytes: 4096,
          perfBytes: 2 ** 20,
          backlogBytes: 0,
          captureBytes,
          protocols: [],
          includePorts: [1],
          excludePorts: [],
          maxPerSecond: 0,
          alwaysErrors: true,
          alwaysSlow: true,
          slowNs: 1e9,
          boundsNs: Array.from({ length: 15 }, (_, i) => (i + 1) * 1e6),
        },
        { ...ignored, end: () => {}, counted: () => {}, skipped: () => {} },
      )
      const attached = loadedPrograms(backend.name).filter(program => program.attached)
      capture.close()
      assert.deepEqual(attached.map(({ name }) => name).toSorted(), backend.programs.toSorted())
    }
  })
}
