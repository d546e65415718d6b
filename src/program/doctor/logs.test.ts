import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { withoutRoot } from '../../../test/helpers/host-needs.ts'
import { loadConfig } from '../../config/index.ts'
import { examine } from './examine.ts'

/** What the check of container logs finds where the host has such a directory of Docker: state, fault and detail. */
function found(directory: string, user: number): string[][] {
  const script = `
    import { examine } from ${JSON.stringify(import.meta.resolve('./examine.ts'))}
    import { loadConfig } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const loaded = loadConfig({ explicit: false, cwd: '/', systemFile: '/nonexistent', env: {} })
    const { checks } = (await examine(loaded, { topic: 'logs', isOfFile: true })).groups[0]
    console.log(JSON.stringify(checks.filter(({ name }) => name === 'container logs')))`
  const prepared = `mount -t tmpfs none /var/lib && mount -t tmpfs none /var/log && ${directory}
    exec setpriv --reuid=${user} --regid=${user} --clear-groups "$@"`
  const node = [process.execPath, '--input-type=module', '-e', script]
  const done = spawnSync('unshare', ['-m', 'sh', '-c', prepared, 'sh', ...node], { encoding: 'utf8' })
  assert.deepEqual([done.status, done.stderr], [0, ''])
  const checks: { state: string; fault: string; detail: string }[] = JSON.parse(done.stdout)
  return checks.map(({ state, fault, detail }) => [state, fault, detail])
}

test('directories of container logs that may not be looked at are told, with their hint', {
  skip: withoutRoot,
}, () => {
  const docker = 'mkdir -p /var/lib/docker/containers/a && chmod 710 /var/lib/docker'
  const [[state, fault, detail] = []] = found(docker, 65_534)
  assert.deepEqual([state, fault], ['missing', 'denied'])
  assert.match(detail!, /^\/var\/lib\/docker\/containers: EACCES/)
  assert.match(found(docker, 0)[0]![2]!, /^\/var\/lib\/docker\/containers: 1 entries$/)
  assert.equal(found('true', 0)[0]![1], 'absent')
})

test('patterns that mean nothing, or files that may not be read, are told', {
  skip: withoutRoot,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-doctor-logs-'))
  t.after(() => rmSync(directory, { recursive: true }))
  chmodSync(directory, 0o755)
  for (const [name, mode] of [
    ['a.log', 0o644],
    ['b.txt', 0o600],
  ] as const)
    writeFileSync(join(directory, name), '', { mode })
  const paths = ['*.log', '*.txt', '*.gone'].map(name => join(directory, name))
  const loaded = loadConfig({
    explicit: false,
    cwd: '/',
    systemFile: '/nonexistent',
    env: { SVC_AGENT_LOGS_PATHS: JSON.stringify(paths) },
  })
  process.seteuid!(65_534)
  const { groups } = await examine(loaded, { topic: 'logs', isOfFile: true }).finally(() =>
    process.seteuid!(0),
  )
  const checks = groups[0]!.checks.filter(({ name }) => name === 'log files')
  assert.deepEqual(
    checks.map(({ state, fault }) => [state, fault]),
    [
      ['ok', undefined],
      ['missing', 'denied'],
      ['limited', 'none'],
    ],
  )
  assert.match(checks[1]!.detail, /1 of 1 files, such as .*b\.txt$/)
})
