// owns: host
// `svc node-exporter` beside file systems whose servers stop: eight of them in a soak.

import assert from 'node:assert/strict'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountBindfs } from '../helpers/bindfs.ts'
import { treeOf } from '../helpers/collector.ts'
import { ExporterProcess } from '../helpers/exporter-process.ts'
import { withoutBindfs } from '../helpers/host-needs.ts'
import { until } from '../helpers/program.ts'
import { soak } from '../helpers/soak.ts'

const [count, scrapes] = soak ? [8, 20] : [2, 4]

test('mounts that hang hold up no scrape and cost nothing else, and are back when they answer', {
  skip: withoutBindfs,
}, async t => {
  const mountPoints = await mountBindfs(t, count)
  const { directory } = mountPoints
  const texts = join(treeOf(t, { 'text/near.prom': 'near 1\n' }), 'text')
  writeFileSync(join(directory, 'source', 'far.prom'), 'far 1\n')
  symlinkSync(join(directory, 'm0', 'far.prom'), join(texts, 'link.prom'))
  const exporter = await ExporterProcess.own([`--collector.textfile.directory=${texts}`])
  t.after(() => exporter.stop())
  const scrape = async () => {
    const before = performance.now()
    const page = await exporter.page()
    return { page, ms: performance.now() - before, names: names(page), mounts: mounts(page, directory) }
  }
  let well = await scrape()
  const isWell = ({ names, mounts }: typeof well) =>
    names.has('far') && mounts.failed.length === 0 && mounts.sized.length === count
  // What has just been started may take longer than a scrape waits.
  await until('all are shown', 20_000, async () => {
    well = await scrape()
    return isWell(well)
  })
  const labels = (error: string, i: number) =>
    `device="${join(directory, 'source')}",device_error="${error}",fstype="fuse",mountpoint="${directory}/m${i}"`
  const each = (error: string) => Array.from({ length: count }, (_, i) => labels(error, i))
  assert.deepEqual(well.mounts.sized, each(''))
  assert.ok(well.names.size > 100)

  await mountPoints.hang()
  const times: number[] = []
  for (let i = 0; i < scrapes; i++) {
    const { page, ms, names, mounts } = await scrape()
    times.push(ms)
    assert.deepEqual(mounts.failed, each('mountpoint timeout'))
    assert.deepEqual(mounts.sized, [])
    assert.deepEqual(
      [...well.names].filter(name => !names.has(name)),
      ['far'],
    )
    assert.match(page, /^node_textfile_scrape_error 1$/m)
    assert.match(page, /^node_scrape_collector_success{collector="filesystem"} 1$/m)
  }

  // None waits as long as a mount may take, and who has waited once waits hardly any more.
  assert.ok(Math.max(...times) < 4500 && Math.min(...times) < 1000, `scrapes took ${times} ms`)

  mountPoints.answer()
  // What was asked of them before is answered first.
  let again = well
  await until('they answer again', 20_000, async () => {
    again = await scrape()
    return isWell(again)
  })
  assert.deepEqual(again.mounts, well.mounts)
  assert.deepEqual(
    [...well.names].filter(name => !again.names.has(name)),
    [],
  )

  await mountPoints.hang()
  await scrape()
  const before = performance.now()
  await exporter.stop()
  const ms = performance.now() - before
  assert.ok(ms < 8000, `it took ${ms} ms to end`)
})

/** Of all metrics. */
function names(page: string): Set<string> {
  return new Set(page.match(/^[a-zA-Z_]\w*/gm))
}

/** Labels of the mounts below a directory: of those that do not answer, and of those that do. */
function mounts(page: string, directory: string) {
  const found = (pattern: RegExp) =>
    [...page.matchAll(pattern)]
      .map(match => match[1]!)
      .filter(text => text.includes(`mountpoint="${directory}/`))
  return {
    failed: found(/^node_filesystem_device_error{(.*)} 1$/gm),
    sized: found(/^node_filesystem_size_bytes{(.*)} [\d.e+]+$/gm),
  }
}
