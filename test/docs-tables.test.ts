// reads: the tree
// The tables that pages are made of are whole: what the program may say or attach stands in them.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { dropReasons, reasonNamed } from '../src/foundation/model/drop-reasons.ts'
import { findAsset } from '../src/kernel/assets.ts'
import { loadNative, Unsupported } from '../src/kernel/native.ts'
import { metricsSubject } from '../src/view/api/metrics-endpoint.ts'
import { attachments } from '../tools/attachments-page.ts'
import { sourcesOf } from '../tools/source-words.ts'
import { starts } from '../tools/troubleshooting-texts.ts'

const sources = sourcesOf('src').map(file => ({ file, text: readFileSync(file, 'utf8') }))

test('every reason by which the program drops items has its meaning and its hint', () => {
  const found = new Map<string, string>()
  const areas = /^src\/(pipeline|signals|program)\//
  for (const { file, text } of sources.filter(({ file }) => areas.test(file))) {
    const calls = /[#.](?:drop|dropped|dropAtIntake|lose|lost|refuse|giveUp)\((?:[\w.]+, )?'([a-z_]+)'/g
    for (const [, reason] of text.matchAll(calls)) found.set(reason!, file)
  }
  assert.ok(found.size > 15, `${found.size} reasons were found`)
  assert.deepEqual(
    [...found].filter(([reason]) => reasonNamed(reason) === undefined),
    [],
  )
})

test('every reason that has a meaning is one that the program uses', () => {
  const all = sources
    .filter(({ file }) => file !== 'src/foundation/model/drop-reasons.ts')
    .map(({ text }) => text)
  const text = all.join('\n')
  assert.deepEqual(
    Object.keys(dropReasons).filter(reason => !text.includes(`'${reason}'`)),
    [],
  )
})

test('the messages of a start that fails are those of the program', () => {
  const own = sources.map(({ text }) => text.replaceAll(/\$\{metricsSubject\}/g, metricsSubject))
  const text = `${own.join('\n')}${readFileSync('bin/svc', 'utf8')}`
  assert.deepEqual(
    starts.map(([message]) => message).filter(message => !text.includes(message.replace(/:$/, ''))),
    [],
  )
})

test('attributes of spans are written out where they are set, so that the page of spans has all of them', () => {
  const hidden: string[] = []
  for (const { file, text } of sources.filter(({ file }) => file.startsWith('src/signals/traces/protocols/')))
    for (const [call] of text.matchAll(/\battributes\.(?:add|set)\(\s*(?!\s*')[^)]*/g))
      hidden.push(`${file}: ${call}`)
  assert.deepEqual(hidden, ['src/signals/traces/protocols/sql/describe.ts: attributes.add(key, value'])
})

test('the page of attachments has the programs that are built, and no other', () => {
  const native = loadNative()
  assert.ok(!(native instanceof Unsupported))
  for (const [object, programs] of attachments()) {
    const names = new Set<string>()
    // Some are of the build for older kernels alone.
    for (const file of [`${object}.bpf.o`, `old/${object}.bpf.o`].map(findAsset)) {
      if (file === undefined) continue
      const built = native.objectOpen(new Uint8Array(readFileSync(file)), object)
      for (const { name, section } of native.objectPrograms(built)) names.add(`${section} ${name}`)
      native.objectClose(built)
    }
    assert.deepEqual(
      programs.map(({ section, program }) => `${section} ${program}`).sort(),
      [...names].sort(),
    )
  }
})

test('no program of the kernel writes into a process, sends a signal or changes what a call returns', () => {
  const banned =
    /\bbpf_(probe_write_user|send_signal|override_return|skb_store_bytes|msg_push_data|sys_bpf)\w*/
  for (const file of readdirSync('bpf', { recursive: true, encoding: 'utf8' }))
    if (/\.[ch]$/.test(file)) assert.doesNotMatch(readFileSync(join('bpf', file), 'utf8'), banned, file)
})
