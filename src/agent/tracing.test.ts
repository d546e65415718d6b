import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../config/index.ts'
import { captureOptions, ends } from './tracing.ts'

test('of a long log of the verifier both ends are kept', () => {
  assert.equal(ends('short'), 'short')
  const long = `${'a'.repeat(2048)}${'b'.repeat(60_000)}${'c'.repeat(2048)}`
  assert.equal(ends(long), `${'a'.repeat(2048)}\n[...]\n${'c'.repeat(2048)}`)
})

test('the kernel side follows the configuration', () => {
  const env = {
    SVC_AGENT_EBPF_NETWORK_SAMPLING_SLOW_THRESHOLD: '250ms',
    SVC_AGENT_EBPF_NETWORK_EXCLUDE_PORTS: '22',
  }
  const { config } = loadConfig({ explicit: false, cwd: '/nonexistent', systemFile: '/nonexistent', env })
  const { slowNs, excludePorts, boundsNs } = captureOptions(config, [0.005, 1])
  assert.deepEqual([slowNs, excludePorts, boundsNs], [250e6, [22], [5e6, 1e9]])
})
