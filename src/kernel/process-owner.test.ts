import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupOf, ownerOf } from './process-owner.ts'

const id = 'a1'.repeat(32)

test('an owner is the outermost unit, container or session', () => {
  const check = (file: string, want: string) => assert.equal(groupOf(file), want, file)
  check('0::/\n', '')
  check('', '')
  check('0::/system.slice/nginx.service\n', '/system.slice/nginx.service')
  check('0::/system.slice/nginx.service/made/by/it.scope\n', '/system.slice/nginx.service')
  check(`0::/system.slice/docker-${id}.scope/a\n`, `/system.slice/docker-${id}.scope`)
  check(`0::/docker/${id}/docker/${'b2'.repeat(32)}\n`, `/docker/${id}`)
  const pod = '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice'
  check(`0::${pod}/cri-containerd-${id}.scope\n`, `${pod}/cri-containerd-${id}.scope`)
  check('0::/lxc/name/init/below\n', '/lxc/name')
  check(`12:pids:/docker/${id}\n1:name=systemd:/docker/${id}\n0::/\n`, `/docker/${id}`)
  assert.ok(groupOf(`0::/${'x'.repeat(4000)}`).length <= 256)
})

test('groups that a user makes in its own session are the same owner', () => {
  for (const below of [
    'session-1.scope',
    'user@1000.service/app.slice/a.scope',
    `user@1000.service/docker-${id}.scope`,
  ])
    assert.equal(groupOf(`0::/user.slice/user-1000.slice/${below}`), '/user.slice/user-1000.slice')
})

test('this process has an owner, and one that is gone shares with all that are', () => {
  assert.equal(ownerOf('/proc', process.pid).user, String(process.geteuid!()))
  assert.deepEqual(ownerOf('/proc', 0), { group: '', user: 'unknown' })
})
