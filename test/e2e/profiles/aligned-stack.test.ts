// owns: ports, load
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutBpf } from '../../helpers/compile-bpf.ts'
import { Bench } from '../../helpers/profiles/measured-program.ts'
import {
  fold,
  type HostSample,
  isUser,
  ofProgram,
  ProfiledHost,
  partOf,
  sumOf,
} from '../../helpers/profiles/profiled-host.ts'

test('functions that align the stack are unwound to where they began', { skip: withoutBpf }, async () => {
  const bench = new Bench()
  const host = await ProfiledHost.start()
  try {
    const file = bench.compile('aligned', ['-O2', '-fomit-frame-pointer'])
    const program = bench.start(file)
    const wanted = /^_start;.*main;(variable;forced;aligned;spin|leaf)$/
    const isWanted = (names: readonly string[]) => wanted.test(names.toReversed().join(';'))
    const namesOf = ({ frames }: HostSample) => frames.filter(isUser).map(({ name }) => name)
    await host.wait('a stack is as wanted', ofProgram(file), seen =>
      seen.some(each => isWanted(namesOf(each))),
    )
    const sinceMs = Date.now()
    const later = (sample: HostSample) => sample.startMs >= sinceMs && ofProgram(file)(sample)
    const seen = await host.wait('half a second of it is told', later, found => sumOf(found) > 5e8)
    const part = partOf(seen, names => wanted.test(names.join(';')))
    assert.ok(part >= 0.95, `${part} are as wanted: ${[...fold(seen)].slice(0, 10).join('\n')}`)
    await program.end('SIGKILL')
  } finally {
    await host.close()
    await bench.close()
  }
})
