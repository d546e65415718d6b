// owns: host
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { svcProgram } from '../../../test/helpers/program-under-test.ts'
import { loadConfig } from '../../config/index.ts'
import { examine } from './examine.ts'

const skip = withoutBpf

async function found(env: Record<string, string>): Promise<string[][]> {
  const nowhere = '/nonexistent'
  const loaded = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(loaded.problems, [])
  const { groups } = await examine(loaded, { topic: 'kernel', isOfFile: true })
  return groups[0]!.checks.map(({ name, state }) => [name, state])
}

test('each part that is asked for is loaded, and no other', { skip }, async () => {
  const byDefault = [
    ['connection programs', 'ok'],
    ['process programs', 'ok'],
    ['host programs', 'ok'],
  ]
  assert.deepEqual(await found({}), byDefault)
  assert.deepEqual(
    await found({ SVC_AGENT_EBPF_SYSCALLS_ENABLED: 'true' }),
    byDefault.toSpliced(2, 0, ['system call programs', 'ok']),
  )
  assert.deepEqual(await found({ SVC_AGENT_EBPF_NETWORK_ENABLED: 'false' }), byDefault.slice(1))
  assert.deepEqual(await found({ SVC_AGENT_NODEEXPORTER_EBPF_ENHANCED: 'false' }), byDefault.slice(0, 2))
})

test('without the right to load programs nothing is said to be missing of the kernel', { skip }, () => {
  const args = [
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    process.execPath,
    svcProgram,
    'doctor',
    'kernel',
  ]
  const { stdout, stderr } = spawnSync('setpriv', args, { cwd: '/', encoding: 'utf8' })
  assert.equal(stderr, '')
  assert.match(stdout, /unknown +connection programs +cannot be checked without permission to load programs/)
  assert.match(stdout, /unknown +process programs/)
  assert.doesNotMatch(stdout, /missing +\w/)
})
