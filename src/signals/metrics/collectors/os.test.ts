import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readWith, survivesJunk, treeOf } from '../../../../test/helpers/collector.ts'
import { os, parseAssignments } from './os.ts'

const read = async (root?: string) => {
  const { lines, ...rest } = await readWith(os, {}, root)
  return { samples: lines.filter(line => !line.startsWith('#')), ...rest }
}

test('name, version and end of support are shown', async () => {
  const { samples } = await read()
  assert.deepEqual(samples, [
    'node_os_info{build_id="2025-03",id="example",id_like="rhel fedora",image_id="",image_version="",' +
      'name="Example Linux",pretty_name="Example \\"Blue\\" Linux 9.4 (Hämeenlinna)",variant="",' +
      'variant_id="server",version="9.4 (Hämeenlinna)",version_codename="",version_id="9.4.1"} 1',
    'node_os_support_end_timestamp_seconds 1.9695744e+09',
    'node_os_version{id="example",id_like="rhel fedora",name="Example Linux"} 9.4',
  ])
})

test('/usr/lib stands in for /etc; a version that is no number is not shown', async t => {
  const { samples } = await read(treeOf(t, { 'rootfs/usr/lib/os-release': 'ID=arch\nVERSION_ID=rolling\n' }))
  assert.equal(samples.length, 1)
  assert.match(samples[0]!, /id="arch"/)
})

test('a new file is shown at the next reading', async t => {
  const root = treeOf(t, { 'rootfs/etc/os-release': 'ID=old\nVERSION_ID=1\n' })
  const { lines } = await readWith(os, {}, root, async () =>
    writeFileSync(join(root, 'rootfs/etc/os-release'), 'ID=new\nVERSION_ID=2\n'),
  )
  assert.ok(lines.includes('node_os_version{id="new",id_like="",name=""} 2'))
})

test('values are unquoted as a shell does it', () => {
  const check = (line: string, value: string) => assert.equal(parseAssignments(line).get('A'), value)
  check('A=plain words # comment', 'plain words')
  check('export A="x # y " ', 'x # y ')
  check("A='a\"b'c", 'a"bc')
  check('A="\\$\\`\\\\\\"\\n"', '$`\\"\n')
  check('A=', '')
  check('# B\n\n A = "1" ', '1')
  for (const bad of ['A="open', "A='", 'A="\\', 'A=\u0001', 'words', '=1', '1A=2'])
    assert.throws(() => parseAssignments(bad), /^Error: line 1 /)
})

test('a host without the file has no data, and what is no such file fails', async t => {
  assert.equal((await read(treeOf(t, {}))).outcome, 'no_data')
  const day = await read(treeOf(t, { 'rootfs/etc/os-release': 'ID=a\nSUPPORT_END=2025-02-30\n' }))
  assert.match(day.reason, /os-release: SUPPORT_END is not a date/)
  for (const junk of ['\u0000\u0001', 'x '.repeat(500_000), 'A='.repeat(500_000)])
    assert.equal((await read(treeOf(t, { 'rootfs/etc/os-release': junk }))).outcome, 'failed')
  // An empty one says that it knows nothing.
  await survivesJunk(t, os, ['rootfs/usr/lib/os-release'], {}, true)
})
