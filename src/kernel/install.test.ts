import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { type Install, installOf } from './install.ts'

function check(files: Readonly<Record<string, string>>, env: Record<string, string>, want: Install): void {
  const root = mkdtempSync(join(tmpdir(), 'svc-root-'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  assert.equal(installOf(env, root), want, JSON.stringify([files, env]))
  rmSync(root, { recursive: true })
}

const token = 'var/run/secrets/kubernetes.io/serviceaccount/token'

test('what svc runs under is told by the environment and by files', () => {
  check({}, {}, 'host')
  check({ 'proc/self/cgroup': '0::/user.slice/user-0.slice/session-1.scope\n' }, {}, 'host')
  check({}, { INVOCATION_ID: 'a1' }, 'systemd')
  check({ 'etc/systemd/system/svc.service': '' }, {}, 'systemd')
  check({ 'lib/systemd/system/svc.service': '' }, {}, 'systemd')
  check({ '.dockerenv': '' }, {}, 'container')
  check({ 'run/.containerenv': '' }, {}, 'container')
  check({}, { container: 'podman' }, 'container')
  check({ 'proc/self/cgroup': '4:memory:/docker/0123abcd\n' }, {}, 'container')
  check({ 'proc/self/cgroup': '0::/system.slice/docker-0123abcd.scope\n' }, {}, 'container')
  check({ 'proc/self/cgroup': '0::/system.slice/docker.service\n' }, {}, 'host')
  check({}, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, 'kubernetes')
  check({ [token]: '' }, {}, 'kubernetes')
})

test('the outer wins: a pod is a container, and a container may be a service', () => {
  check({ '.dockerenv': '', [token]: '' }, { INVOCATION_ID: 'a1' }, 'kubernetes')
  check({ '.dockerenv': '' }, { INVOCATION_ID: 'a1' }, 'container')
})
