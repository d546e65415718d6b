import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { mountstats } from './mountstats.ts'

const home = 'export="nas.example:/srv/home",mountaddr="192.0.2.9"'
const old = 'export="old.example:/export",mountaddr="198.51.100.2"'

test('each export is shown once, and each of its mounts', async () => {
  const { lines, outcome } = await readWith(mountstats)
  assert.equal(outcome, 'success')
  const family = (name: string) => lines.filter(line => line.startsWith(`node_mountstats_nfs_${name}{`))
  const check = (name: string, want: readonly string[]) =>
    assert.deepEqual(
      family(name),
      want.map(rest => `node_mountstats_nfs_${name}{${rest}`),
    )
  check('mountpoint_info', [
    `${home},mountpoint="/home",protocol="tcp"} 1`,
    `${home},mountpoint="/srv/again",protocol="tcp"} 1`,
    `${old},mountpoint="/mnt/old",protocol="udp"} 1`,
  ])
  check('age_seconds_total', [`${home},protocol="tcp"} 8640`, `${old},protocol="udp"} 77`])
  check('read_bytes_total', [`${home},protocol="tcp"} 1000`, `${old},protocol="udp"} 9`])
  check('write_pages_total', [`${home},protocol="tcp"} 8`, `${old},protocol="udp"} 2`])
  check('event_vfs_open_total', [`${home},protocol="tcp"} 105`, `${old},protocol="udp"} 5`])
  check('event_truncation_total', [`${home},protocol="tcp"} 20`, `${old},protocol="udp"} 20`])
  check('event_pnfs_write_total', [`${home},protocol="tcp"} 27`, `${old},protocol="udp"} 27`])
  // UDP has neither connections nor idle time.
  check('transport_connect_total', [
    `${home},protocol="tcp",transport="0"} 2`,
    `${home},protocol="tcp",transport="1"} 1`,
    `${old},protocol="udp",transport="0"} 0`,
  ])
  check('transport_idle_time_seconds', [
    `${home},protocol="tcp",transport="0"} 30`,
    `${home},protocol="tcp",transport="1"} 31`,
    `${old},protocol="udp",transport="0"} 0`,
  ])
  check('transport_pending_queue_total', [
    `${home},protocol="tcp",transport="0"} 90`,
    `${home},protocol="tcp",transport="1"} 80`,
    `${old},protocol="udp",transport="0"} 10`,
  ])
  check('operations_response_time_seconds_total', [
    `${home},operation="NULL",protocol="tcp"} 0.006`,
    `${home},operation="READ",protocol="tcp"} 0.25`,
    `${old},operation="GETATTR",protocol="udp"} 0.002`,
  ])
  // The kernel's sum of READ is -100 ms.
  check('operations_queue_time_seconds_total', [
    `${home},operation="NULL",protocol="tcp"} 0.005`,
    `${home},operation="READ",protocol="tcp"} 9.007199254740893e+12`,
    `${old},operation="GETATTR",protocol="udp"} 0.001`,
  ])
})

const mount = 'device a:/b mounted on /c with fstype nfs4 statvers=1.1\n'

test('RDMA has the first ten numbers in common with TCP', async t => {
  const xprt = `\txprt: rdma ${Array.from({ length: 24 }, (_, i) => i + 1).join(' ')}\n`
  const files = { 'proc/self/mountstats': mount + xprt, 'proc/self/mountinfo': '' }
  const { lines, outcome } = await readWith(mountstats, {}, treeOf(t, files))
  assert.equal(outcome, 'success')
  const labels = 'export="a:/b",mountaddr="",protocol="rdma",transport="0"'
  assert.ok(lines.includes(`node_mountstats_nfs_transport_backlog_queue_total{${labels}} 10`))
  assert.ok(lines.includes(`node_mountstats_nfs_transport_maximum_rpc_slots{${labels}} 0`))
})

test('a host without NFS shows nothing', async t => {
  const files = {
    'proc/self/mountstats': 'device proc mounted on /proc with fstype proc\n',
    'proc/self/mountinfo': '',
  }
  assert.deepEqual(await readWith(mountstats, {}, treeOf(t, files)), {
    lines: [],
    outcome: 'success',
    reason: '',
  })
})

test('what is not as the kernel writes it is an error', async t => {
  for (const text of [
    'device a mounted\n',
    'device a mounted on /b with fstype ceph statvers=1.0\n',
    `${mount}\tage: x\n`,
    `${mount}\tbytes: 1 2 3\n`,
    `${mount}\tevents: 1\n`,
    `${mount}\txprt: tcp 1 2 3\n`,
    `${mount}\txprt: udp 1 2 3 4 5 6 7 8 9 10 11\n`,
    `${mount}\txprt: local 1\n`,
    `${mount}\tper-op statistics\n\tNULL: 1 2 3\n`,
    mount.replace('1.1', '9.9').concat('\txprt: tcp 1\n'),
  ]) {
    const files = { 'proc/self/mountstats': text, 'proc/self/mountinfo': '' }
    assert.equal((await readWith(mountstats, {}, treeOf(t, files))).outcome, 'failed', text)
  }
  assert.equal((await readWith(mountstats, {}, treeOf(t, {}))).outcome, 'failed')
  await survivesJunk(t, mountstats, ['proc/self/mountstats'])
  // Without addresses the label is empty.
  await survivesJunk(t, mountstats, ['proc/self/mountinfo'], {}, true)
})
