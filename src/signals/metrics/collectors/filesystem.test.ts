// owns: host
import assert from 'node:assert/strict'
import { mkdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountBindfs } from '../../../../test/helpers/bindfs.ts'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { withoutBindfs } from '../../../../test/helpers/host-needs.ts'
import { until } from '../../../../test/helpers/program.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { boundsOf } from '../exposition/bounds.ts'
import { Gatherer } from '../exposition/gatherer.ts'
import { Page } from '../exposition/page.ts'
import { filesystem } from './filesystem.ts'

const root = '30 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n'

/** A host whose mount points are directories. */
function hostWith(t: TestContext, mountinfo: string, ...directories: readonly string[]): string {
  const tree = treeOf(t, { 'proc/1/mountinfo': mountinfo })
  for (const directory of directories) mkdirSync(join(tree, 'rootfs', directory), { recursive: true })
  return tree
}

async function linesOf(tree: string, options: Record<string, unknown> = {}): Promise<readonly string[]> {
  const { lines, outcome, reason } = await readWith(filesystem, options, tree)
  assert.equal(outcome, 'success', reason)
  return lines
}

/** The mount points that are shown. */
async function pointsOf(tree: string, options: Record<string, unknown> = {}): Promise<readonly string[]> {
  const lines = await linesOf(tree, options)
  return lines.flatMap(line => /^node_filesystem_readonly.*mountpoint="([^"]*)"/.exec(line)?.[1] ?? [])
}

test('mounts of an ordinary host are shown, without those of the system and of containers', async () => {
  assert.deepEqual(await pointsOf(undefined as unknown as string), [
    '/srv/old archive',
    '/',
    '/boot/efi',
    '/mnt/backup',
    '/run',
  ])
})

test('a mount has the numbers of statfs', async t => {
  const tree = hostWith(t, root)
  const { bsize, blocks, files } = statfsSync(join(tree, 'rootfs'))
  const lines = await linesOf(tree)
  const labels = '{device="/dev/sda1",device_error="",fstype="ext4",mountpoint="/"}'
  const value = (name: string) =>
    Number(
      lines
        .find(line => line.startsWith(`node_filesystem_${name}${labels} `))
        ?.split(' ')
        .at(-1),
    )
  assert.equal(value('size_bytes'), blocks * bsize)
  assert.equal(value('files'), files)
  assert.ok(value('files_free') <= files && value('files_free') > 0)
  assert.ok(value('avail_bytes') <= value('free_bytes') && value('free_bytes') < value('size_bytes'))
  assert.equal(value('device_error'), 0)
  assert.equal(value('readonly'), 0)
  assert.equal(value('purgeable_bytes'), 0)
  assert.ok(
    lines.includes('node_filesystem_mount_info{device="/dev/sda1",major="8",minor="1",mountpoint="/"} 1'),
  )
  assert.equal(lines.length, 18)
})

test('a file system that gives no answer is shown with the reason, here and far away', async t => {
  const tree = hostWith(
    t,
    `${root}41 30 8:2 / /gone ro - xfs /dev/sdb ro\n42 30 0:50 / /nas rw - nfs4 filer:/x ro\n43 30 0:51 / /here rw - fuse.sshfs me@x: rw\n`,
    'here',
  )
  let lines: readonly string[] = []
  // The probe that is asked for what is far away has just been started.
  await until('all is answered', 30_000, async () => {
    lines = await linesOf(tree)
    return !lines.some(line => line.includes('timeout'))
  })
  for (const [device, type, point] of [
    ['/dev/sdb', 'xfs', '/gone'],
    ['filer:/x', 'nfs4', '/nas'],
  ] as const) {
    const labels = `{device="${device}",device_error="no such file or directory",fstype="${type}",mountpoint="${point}"}`
    assert.deepEqual(
      lines.filter(line => line.includes(`mountpoint="${point}"`)),
      [`node_filesystem_device_error${labels} 1`, `node_filesystem_readonly${labels} 1`],
    )
  }
  const { blocks, bsize } = statfsSync(join(tree, 'rootfs'))
  const size = lines.find(line => line.startsWith('node_filesystem_size_bytes{device="me@x:"'))
  assert.equal(Number(size?.split(' ').at(-1)), blocks * bsize)
})

test('mounts of this process stand in where those of the first one are hidden', async t => {
  const tree = treeOf(t, { 'proc/self/mountinfo': root })
  assert.deepEqual(await pointsOf(tree), ['/'])
  const { outcome, reason } = await readWith(filesystem, {}, treeOf(t, {}))
  assert.equal(outcome, 'failed')
  assert.match(reason, /ENOENT.*self\/mountinfo/)
})

test('the same mount twice is one, and of several on one another all device numbers are shown', async t => {
  const tree = hostWith(
    t,
    `${root}${root}41 30 0:40 / /x rw - tmpfs none rw\n42 41 0:41 / /x rw - tmpfs none rw\n43 42 0:41 / /x ro - tmpfs none rw\n`,
    'x',
  )
  const { lines, outcome } = await readWith(filesystem, {}, tree)
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => line.startsWith('node_filesystem_mount_info{device="none"')),
    ['40', '41'].map(
      minor => `node_filesystem_mount_info{device="none",major="0",minor="${minor}",mountpoint="/x"} 1`,
    ),
  )
  assert.equal(lines.filter(line => line.startsWith('node_filesystem_readonly{device="none"')).length, 1)
})

test('options choose mounts by type and by mount point', async t => {
  const types = ['tmpfs', 'xfs', 'fuse.a', 'overlay']
  const tree = hostWith(
    t,
    root + types.map((type, i) => `4${i} 30 0:4${i} / /m${i} rw - ${type} dev${i} rw\n`).join(''),
  )
  const check = async (options: Record<string, unknown>, ...want: string[]) =>
    assert.deepEqual([...(await pointsOf(tree, options))].sort(), want)
  await check({}, '/', '/m0', '/m1', '/m2')
  await check({ fs_types_exclude: '' }, '/', '/m0', '/m1', '/m2', '/m3')
  await check({ fs_types_exclude: 'fs$' }, '/', '/m2', '/m3')
  await check({ fs_types_include: '^(overlay|xfs)$' }, '/m1', '/m3')
  await check({ ignored_fs_types: ['tmpf', 'xfs', 'fuse.a'] }, '/', '/m0', '/m3')
  await check({ ignored_fs_types: ['/^fuse/', 'ext4'] }, '/m0', '/m1', '/m3')
  await check({ ignored_fs_types: ['^(ext4|tmpfs|xfs)$'] }, '/m2', '/m3')
  await check({ mount_points_exclude: '[12]' }, '/', '/m0')
  await check({ mount_points_include: 'm[0-3]$' }, '/m0', '/m1', '/m2')
  await check({ ignored_mount_points: ['1', '^/$'] }, '/m0', '/m2')
})

test('options that contradict each other are refused with their names', async t => {
  const check = (options: Record<string, unknown>, message: RegExp) =>
    assert.rejects(readWith(filesystem, options, hostWith(t, root)), message)
  await check(
    { fs_types_exclude: 'a', fs_types_include: 'b' },
    /^Error: fs_types_exclude and fs_types_include are mutually exclusive/,
  )
  await check({ ignored_fs_types: ['a'], fs_types_include: 'b' }, /ignored_fs_types and fs_types_include/)
  await check(
    { mount_points_exclude: 'a', mount_points_include: 'b' },
    /mount_points_exclude and mount_points_include/,
  )
  await check(
    { ignored_mount_points: ['a'], mount_points_exclude: 'b' },
    /ignored_mount_points and mount_points_exclude/,
  )
})

test('mountinfo that is none fails, and ends', async t => {
  await survivesJunk(t, filesystem, ['proc/1/mountinfo'])
})

/** A host seen again and again: this one, by the mounts below a directory and its root. */
function watch(t: TestContext, directory: string) {
  const host = new HostFiles({ procfs: '/proc', sysfs: '/sys', rootfs: '/', udev: '/run/udev/data' })
  const defaults = Object.fromEntries(
    Object.entries(filesystem.options ?? {}).map(([name, leaf]) => [name, leaf.default]),
  )
  const reader = filesystem.start({ ...defaults, mount_points_include: `^(/|${directory}/.*)$` } as never, {
    host,
    log: silentLogger,
  })
  const bounds = boundsOf({
    enabled: false,
    max_metrics: 0,
    include_metrics: [],
    exclude_metrics: [],
    drop_labels: [],
  })
  const page = new Page({ namespace: 'node', bounds })
  const gatherer = new Gatherer({
    collectors: [{ name: 'filesystem', reader }],
    page,
    log: silentLogger,
    maxWaiting: 1,
  })
  t.after(() => {
    gatherer.close()
    host.close()
  })
  const scrape = async () => {
    const before = performance.now()
    await gatherer.gather(gatherer.runs, 5000)
    const lines = page.write(new Set(gatherer.runs)).text.split('\n')
    const ms = performance.now() - before
    assert.equal(gatherer.runs[0]?.outcome, 'success', gatherer.runs[0]?.reason)
    const errors = lines.filter(line => /^node_filesystem_device_error.* 1$/.test(line))
    const sizes = lines.filter(line => line.startsWith('node_filesystem_size_bytes'))
    return { ms, errors, sizes, hasRoot: sizes.some(line => line.includes('mountpoint="/"')), gatherer }
  }
  // Where the machine stands still for half a second, the root does not answer in time either.
  return async () => {
    let seen = await scrape()
    await until('the root answers', 30_000, async () => {
      if (!seen.hasRoot) seen = await scrape()
      return seen.hasRoot
    })
    return seen
  }
}

const count = soak ? 8 : 2

test('file systems that hang hold up no scrape, and are back when they answer', {
  skip: withoutBindfs,
}, async t => {
  const mounts = await mountBindfs(t, count)
  const before = watch(t, mounts.directory)
  const areWell = async (scrape: typeof before) => {
    const { errors, sizes } = await scrape()
    return errors.length === 0 && sizes.length === count + 1
  }
  await until('all are shown', 30_000, () => areWell(before))
  await mounts.hang()
  const fresh = watch(t, mounts.directory)
  for (const scrape of [before, fresh]) {
    const times: number[] = []
    for (let i = 0; i < 5; i++) {
      const { ms, errors, sizes } = await scrape()
      times.push(ms)
      assert.equal(errors.length, count)
      assert.ok(
        errors.every(line => line.includes('device_error="mountpoint timeout",fstype="fuse"')),
        errors[0],
      )
      assert.equal(sizes.length, 1)
    }
    // None waits as long as a mount may take, and who has waited once waits no more.
    assert.ok(Math.max(...times) < 4500 && Math.min(...times.slice(1)) < 250, `they took ${times} ms`)
  }
  mounts.answer()
  for (const scrape of [before, fresh]) await until('they are back', 30_000, () => areWell(scrape))
  await mounts.hang()
  const { gatherer } = await before()
  const start = performance.now()
  gatherer.close()
  assert.ok(performance.now() - start < 10_000)
})

test('a file system that is mounted where another one hangs for good is shown', {
  skip: withoutBindfs,
}, async t => {
  const mounts = await mountBindfs(t, 1)
  const scrape = watch(t, mounts.directory)
  const isWell = async () => {
    const { errors, sizes } = await scrape()
    return errors.length === 0 && sizes.length === 2
  }
  await until('it is shown', 30_000, isWell)
  await mounts.hang()
  assert.equal((await scrape()).errors.length, 1)
  await mounts.remount(0)
  await until('the new one is shown', 30_000, isWell)
})

test('an answer that came between two scrapes is shown by the second', { skip: withoutBindfs }, async t => {
  const mounts = await mountBindfs(t, 1)
  const scrape = watch(t, mounts.directory)
  const errors = async () => (await scrape()).errors.length
  const isShown = async (answerMs: number) => {
    await until('it answers', 30_000, async () => (await errors()) === 0)
    await mounts.hang()
    assert.equal(await errors(), 1)
    mounts.answer()
    await new Promise(resolve => setTimeout(resolve, answerMs))
    await mounts.hang()
    const between = await errors()
    assert.equal(await errors(), 1)
    mounts.answer()
    return between === 0
  }
  // Of a busy machine the answer may take longer than it was given.
  let shown = false
  for (let answerMs = 200; !shown && answerMs < 4000; answerMs *= 2) shown = await isShown(answerMs)
  assert.ok(shown)
})
