import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { type ContainerPlace, noPlace, placeOf, placeOfNames } from './container-place.ts'
import { ProcessReader } from './process-reader.ts'

const runs = soak ? 100_000 : 1_000
const a = 'a1'.repeat(32)
const b = 'b2'.repeat(32)
const uid = '1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9'
const escaped = uid.replaceAll('-', '_')
const hash = '0123456789abcdef0123456789abcdef'

const check = (file: string, id: string, runtime = '', podUid = '') =>
  assert.deepEqual(placeOf(file), { id, runtime, podUid }, file)

test('the containers of Docker, in both versions of control groups', () => {
  check(`0::/system.slice/docker-${a}.scope\n`, a, 'docker')
  check(
    `12:memory:/docker/${a}\n1:name=systemd:/docker/${a}\n0::/system.slice/containerd.service\n`,
    a,
    'docker',
  )
  check(`0::/docker/${a}\n`, a, 'docker')
  check(`0::/ecs/0f9de17a6465404e8b1b2356dc13c2f8/${a}\n`, a)
  check(`4:memory:/system.slice:docker:${a}\n`, a, 'docker')
})

test('the containers of pods, by containerd, CRI-O and Docker', () => {
  const slice = `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${escaped}.slice`
  check(`0::${slice}/cri-containerd-${a}.scope\n`, a, 'containerd', uid)
  check(`0::${slice}/crio-${a}.scope\n`, a, 'cri-o', uid)
  check(`0::${slice}/crio-${a}.scope/container\n`, a, 'cri-o', uid)
  check(`0::${slice}/docker-${a}.scope\n`, a, 'docker', uid)
  check(`0::/kubepods.slice/kubepods-pod${escaped}.slice/cri-containerd-${a}.scope\n`, a, 'containerd', uid)
  check(`7:memory:/kubepods/burstable/pod${uid}/${a}\n`, a, '', uid)
  check(`7:memory:/kubepods/pod${uid}/crio-${a}\n`, a, 'cri-o', uid)
  const pair = `kubepods-burstable-pod${escaped}.slice:cri-containerd:${a}`
  check(`7:memory:/system.slice/containerd.service/${pair}\n`, a, 'containerd', uid)
  check(`0::/kubepods.slice/kubepods-pod${hash}.slice/crio-${a}.scope\n`, a, 'cri-o', hash)
  check(`0::${slice}\n`, '', '', uid)
})

test('the containers of Podman, and not its pods', () => {
  check(`0::/machine.slice/libpod-${a}.scope\n`, a, 'podman')
  check(`0::/machine.slice/libpod-${a}.scope/container\n`, a, 'podman')
  check(`0::/machine.slice/machine-libpod_pod_${b}.slice/libpod-${a}.scope\n`, a, 'podman')
  check(`0::/libpod_parent/libpod-${a}\n`, a, 'podman')
  check(`0::/libpod_parent/${b}/libpod-${a}\n`, a, 'podman')
  check(`0::/system.slice/shop.service/libpod-payload-${a}\n`, a, 'podman')
  check(`0::/machine.slice/libpod-${a}.scope/libpod-payload-${a}\n`, a, 'podman')
})

test('what watches over a container runs on the host', () => {
  for (const group of [`libpod-conmon-${a}.scope`, `crio-conmon-${a}.scope`])
    assert.equal(placeOf(`0::/machine.slice/${group}\n`), noPlace)
})

test('groups within a container count to it', () => {
  check(`0::/system.slice/docker-${a}.scope/init.scope\n`, a, 'docker')
  check(`0::/system.slice/docker-${a}.scope/system.slice/nginx.service\n`, a, 'docker')
})

test('paths that begin above the root of a namespace are understood', () => {
  check(`0::/../docker-${a}.scope\n`, a, 'docker')
  check(`0::/../../pod${uid}/${a}\n`, a, '', uid)
  check(`0::/../cri-containerd-${a}.scope\n`, a, 'containerd')
})

test('processes that are in no container have no place', () => {
  for (const path of [
    '/',
    '/init.scope',
    '/system.slice/nginx.service',
    '/user.slice/user-1000.slice/session-2.scope',
    '/machine.slice/systemd-nspawn@debian.service/payload',
    '/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator',
    '/lxc.payload.web/system.slice/nginx.service',
    '/lxc/web',
    `/docker/${a.slice(1)}`,
    `/docker/${a}0`,
    `/docker/${a.toUpperCase()}`,
    `/user.slice/${a}.slice`,
    `/podcast.slice/tripod-${uid}x.slice`,
    '/garbage:docker',
  ])
    assert.equal(placeOf(`0::${path}\n`), noPlace, path)
  assert.equal(placeOf(''), noPlace)
  assert.equal(placeOf('no path\n\n::\n'), noPlace)
})

test('below user.slice, where users name groups, nothing is a container or a pod', () => {
  const own = '/user.slice/user-1000.slice/user@1000.service'
  const pod = `kubepods.slice/kubepods-pod${escaped}.slice`
  for (const group of [
    `docker-${a}.scope`,
    `app.slice/docker-${a}.scope`,
    `system.slice/docker-${a}.scope`,
    `user.slice/libpod-${a}.scope/container`,
    `user.slice/nerdctl-${a}.scope`,
    `${pod}/crio-${a}.scope`,
    pod,
    `docker/${a}`,
    `app.slice:docker:${a}`,
    `pod${uid}/${a}`,
  ]) {
    assert.equal(placeOf(`0::${own}/${group}\n`), noPlace, group)
    assert.equal(placeOf(`0::/../..${own}/${group}\n`), noPlace, group)
    assert.equal(placeOf(`3:memory:${own}\n1:name=systemd:${own}/${group}\n0::/\n`), noPlace, group)
    // Of a whole host in a container, its users name no other one.
    check(`0::/system.slice/docker-${b}.scope${own}/${group}\n`, b, 'docker')
    check(`0::/${pod}/crio-${b}.scope${own}/${group}\n`, b, 'cri-o', uid)
  }
  assert.equal(placeOfNames([`libpod-${a}.scope`, 'user.slice']), noPlace)
})

test('what was in a group that a user may have named has its place on the account of the user alone', () => {
  const reader = new ProcessReader('/nonexistent', () => 0, [])
  const accountOf = (user: number) => {
    const cgroupNames = [`docker-${a}.scope`, 'system.slice']
    const news = {
      kind: 'exit',
      pid: 42,
      start: 1,
      parent: 1,
      user,
      path: '',
      comm: 'x',
      cgroupNames,
    } as const
    return reader.gone(42, 'x', news).identity.account
  }
  assert.deepEqual(accountOf(1000), { group: '', user: '1000' })
  assert.deepEqual(accountOf(0), { group: a, user: '0' })
})

test('a container within a container is the inner one, and knows the outer', () => {
  const inner = { id: b, runtime: 'docker', podUid: '' }
  const docker: ContainerPlace = { id: a, runtime: 'docker', podUid: '' }
  assert.deepEqual(placeOf(`4:memory:/docker/${a}/docker/${b}\n`), { ...inner, outer: docker })
  assert.deepEqual(
    placeOf(`0::/system.slice/docker-${a}.scope/kubelet/kubepods/burstable/pod${uid}/${b}\n`),
    {
      id: b,
      runtime: '',
      podUid: uid,
      outer: docker,
    },
  )
})

test('of several hierarchies the one that tells most is taken', () => {
  check(`9:pids:/\n4:memory:/docker/${a}\n0::/system.slice/docker.service\n`, a, 'docker')
  check(`4:memory:/\n0::/kubepods.slice/kubepods-pod${escaped}.slice/crio-${a}.scope\n`, a, 'cri-o', uid)
})

test('the names of a group and of the one above it tell the same', () => {
  assert.deepEqual(placeOfNames([`docker-${a}.scope`, 'system.slice']), {
    id: a,
    runtime: 'docker',
    podUid: '',
  })
  assert.deepEqual(placeOfNames([a, `pod${uid}`]), { id: a, runtime: '', podUid: uid })
  assert.equal(placeOfNames([]), noPlace)
})

test('any text has a place, and what it tells has its form', () => {
  const word = fc.constantFrom(
    '/',
    ':',
    '0::',
    '\n',
    'docker',
    'docker-',
    '.scope',
    '.slice',
    'pod',
    uid,
    escaped,
    a,
    b,
    hash,
    '..',
  )
  const text = fc.oneof(
    fc.string(),
    fc.array(word, { maxLength: 40 }).map(words => words.join('')),
  )
  fc.assert(
    fc.property(text, text, (one, other) => {
      for (let at: ContainerPlace | undefined = placeOf(one + other), depth = 0; at; at = at.outer, depth++) {
        assert.match(at.id, /^([0-9a-f]{64})?$/)
        assert.match(at.podUid, /^([0-9a-f-]{32,36})?$/)
        assert.ok(depth < 4)
      }
    }),
    { numRuns: runs },
  )
})

test('the time that a text takes grows with its length alone', () => {
  const deep = `0::/${`docker-${'a'.repeat(63)}/pod-pod`.repeat(1_000)}\n`.repeat(50)
  assert.equal(placeOf(deep), noPlace)
})
