import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseMounts, RemotePaths } from './mounts.ts'

const local = '30 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw'

function mounts(lines: readonly string[], root = '/') {
  return parseMounts(Buffer.from(`${lines.join('\n')}\n`), root)
}

test('a mount has what its line says, with the mount point decoded and tags left out', () => {
  const line =
    '41 30 259:7 /sub /srv/a\\040b\\011\\134 rw,noatime shared:3 master:1 - xfs /dev/x\\040y rw,attr2'
  const [mount] = mounts([line])
  assert.deepEqual(mount, {
    device: '/dev/x\\040y',
    type: 'xfs',
    point: '/srv/a b\t\\',
    path: Buffer.from('/srv/a b\t\\'),
    major: '259',
    minor: '7',
    isReadOnly: false,
    mayHang: false,
    isRemote: false,
    isUsers: false,
  })
})

test('a mount point that is no UTF-8 is shown repaired and asked as it is', () => {
  const [mount] = parseMounts(Buffer.from('41 30 8:7 / /srv/\xe4\xf6 rw - ext4 /dev/x rw\n', 'latin1'), '/')
  assert.equal(mount?.point, '/srv/\ufffd')
  assert.deepEqual(mount?.path, Buffer.from('/srv/\xe4\xf6', 'latin1'))
})

test('the options of the mount or of its file system make it read-only', () => {
  const check = (own: string, shared: string, want: boolean) =>
    assert.equal(mounts([`41 30 8:7 / /srv ${own} - ext4 /dev/x ${shared}`])[0]?.isReadOnly, want)
  check('rw,relatime', 'rw,errors=remount-ro', false)
  check('ro,relatime', 'rw', true)
  check('rw,relatime', 'ro,errors=continue', true)
  check('rw,relatime', 'rw,emergency_ro,errors=remount-ro', true)
})

test('a root directory elsewhere is taken off mount points and put before paths', () => {
  const check = (point: string, shown: string, path: string) => {
    const [mount] = mounts([`41 30 8:7 / ${point} rw - ext4 /dev/x rw`], '/host/')
    assert.equal(mount?.point, shown)
    assert.equal(String(mount?.path), path)
  }
  check('/', '/', '/host')
  check('/boot', '/boot', '/host/boot')
  check('/host', '/', '/host')
  check('/host/boot', '/boot', '/host/boot')
  check('/hostile', '/hostile', '/host/hostile')
})

test('what may hang is far, and so is what lies below it or under it', () => {
  const far = (...lines: string[]) =>
    mounts([local, ...lines])
      .filter(({ isRemote }) => isRemote)
      .map(({ point }) => point)
  assert.deepEqual(far(), [])
  for (const type of ['nfs', 'nfs4', 'cifs', 'smb3', 'fuse.sshfs', 'fuseblk', '9p', 'ceph', 'autofs', 'new'])
    assert.deepEqual(far(`41 30 0:7 / /mnt rw - ${type} x rw`), ['/mnt'], type)
  assert.deepEqual(
    far(
      '41 30 0:7 / /mnt rw - nfs x:/ rw',
      '42 41 8:2 / /mnt/disk rw - ext4 /dev/sdb rw',
      '43 30 8:3 / /mnt2 rw - xfs /dev/sdc rw',
    ),
    ['/mnt', '/mnt/disk'],
  )
  assert.deepEqual(far('41 30 8:2 / /data rw - xfs /dev/sdb rw', '42 30 0:7 / /data rw - ceph a:/ rw'), [
    '/data',
    '/data',
  ])
  const overlay = (dirs: string) =>
    far('41 30 0:7 / /net rw - nfs x:/ rw', `42 30 0:9 / /merged rw - overlay o rw,${dirs}`)
  assert.deepEqual(overlay('lowerdir=/a:/net/b,upperdir=/c,workdir=/d'), ['/net'])
  assert.deepEqual(overlay('lowerdir=/net/a:/b'), ['/net', '/merged'])
  assert.equal(
    mounts(['30 1 0:9 / / rw - nfs x:/ rw', '31 30 8:1 / /tmp rw - tmpfs t rw'])[1]?.isRemote,
    true,
  )
})

test('a path is as far as the mounts on its way', () => {
  const paths = new RemotePaths(mounts([local, '41 30 0:7 / /mnt/nas rw - nfs x:/ rw']))
  assert.equal(paths.has('/mnt/nas/textfile'), true)
  assert.equal(paths.has('/mnt/other/../nas'), true)
  assert.equal(paths.has('/mnt/nasty'), false)
  assert.equal(paths.has('/'), false)
})

test('a path is as far as its links lead', t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-links-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const links = {
    far: 'nas',
    absolute: `${directory}/nas/deep/file`,
    twice: './far/x',
    sub: '../nas',
    near: 'file',
    dangling: 'none/../file',
    loop: 'loop',
    magic: '/proc/self/root',
  }
  mkdirSync(join(directory, 'deep/er'), { recursive: true })
  for (const [name, target] of Object.entries(links))
    symlinkSync(target, join(directory, name === 'sub' ? 'deep/sub' : name))
  symlinkSync(join(directory, 'deep/er'), join(directory, 'jump'))
  const proc = '40 30 0:5 / /proc rw - proc proc rw'
  const nas = (type: string) => `41 30 0:7 / ${directory}/nas rw - ${type} x:/ rw`
  const paths = new RemotePaths(mounts([local, proc, nas('nfs')]))
  const check = (path: string, want: boolean) => assert.equal(paths.has(`${directory}/${path}`), want, path)
  for (const path of ['far', 'far/x', 'absolute', 'twice', 'deep/sub/y', 'deep/../far', 'jump/../sub'])
    check(path, true)
  for (const path of ['near', 'dangling', 'loop', 'magic', 'deep', 'jump/../deep', 'none/x', 'near/x', '.'])
    check(path, false)
  assert.equal(new RemotePaths(mounts([local, nas('xfs')])).has(`${directory}/far`), false)
  assert.equal(
    new RemotePaths(mounts([local, proc, nas('nfs')]), `${directory}/nas/host`).has(`${directory}/far`),
    false,
  )
  const root = ['30 1 0:9 / / rw - nfs x:/ rw', '31 30 8:1 / /tmp rw - tmpfs t rw', nas('nfs')]
  assert.equal(new RemotePaths(mounts(root)).has('/tmp'), true)
  const trusted = new RemotePaths(mounts(root), '/')
  assert.equal(trusted.has('/etc/os-release'), false)
  assert.equal(trusted.has(`${directory}/far`), true)
})

test('a line that shows no mount is refused with its text', () => {
  const check = (line: string) =>
    assert.throws(() => mounts([local, line]), /cannot read mountinfo: no mount in "/)
  check('')
  check('41 30 8:7 / /srv rw - ext4 /dev/x')
  check('41 30 8-7 / /srv rw,relatime - ext4 /dev/x rw')
  check('41 30 8:7 / srv rw,relatime - ext4 /dev/x rw')
  check('41 30 8:7 / /srv rw,relatime ext4 /dev/x rw rw')
  assert.throws(() => parseMounts(Buffer.alloc(0), '/'), /it is empty/)
})
