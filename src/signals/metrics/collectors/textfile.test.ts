// owns: host
import assert from 'node:assert/strict'
import {
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountBindfs } from '../../../../test/helpers/bindfs.ts'
import { hostTree, readWith, treeOf } from '../../../../test/helpers/collector.ts'
import { withoutBindfs } from '../../../../test/helpers/host-needs.ts'
import { until } from '../../../../test/helpers/program.ts'
import { silentLogger } from '../../../../test/helpers/silent-logger.ts'
import type { Distribution, Family } from '../../../foundation/model/collector.ts'
import { fileSource, looseScalar, type Value } from '../../../foundation/schema/value.ts'
import { HostFiles } from '../../../kernel/host.ts'
import { textfile } from './textfile.ts'

/** A directory of files that were written a while ago. */
function directoryOf(t: TestContext, files: Readonly<Record<string, string | Uint8Array>>): string {
  const tree = treeOf(
    t,
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`text/${name}`, text])),
  )
  mkdirSync(join(tree, 'text'), { recursive: true })
  for (const name of Object.keys(files)) utimesSync(join(tree, 'text', name), 1_700_000_000, 1_700_000_000.9)
  return join(tree, 'text')
}

/** Lines without those of types and times of change. */
async function linesOf(...directory: string[]): Promise<readonly string[]> {
  const { lines, outcome, reason } = await readWith(textfile, { directory, require_directory: true })
  assert.equal(outcome, 'success', reason)
  return lines.filter(line => !/^(# |node_textfile_mtime)/.test(line))
}

test('metrics of files are shown as they are, of all types', async () => {
  const { lines, outcome } = await readWith(textfile, { directory: [join(hostTree, 'textfile')] })
  assert.equal(outcome, 'success')
  assert.deepEqual(
    lines.filter(line => !line.includes('mtime')),
    [
      '# TYPE app_queue_seconds summary',
      'app_queue_seconds{quantile="0.5"} 0.02',
      'app_queue_seconds{quantile="0.99"} 0.4',
      'app_queue_seconds_sum 7.5',
      'app_queue_seconds_count 300',
      '# TYPE app_request_seconds histogram',
      'app_request_seconds_bucket{code="200",le="0.1"} 90',
      'app_request_seconds_bucket{code="200",le="1"} 99',
      'app_request_seconds_bucket{code="200",le="+Inf"} 100',
      'app_request_seconds_sum{code="200"} 12.25',
      'app_request_seconds_count{code="200"} 100',
      '# TYPE backup_files_total untyped',
      'backup_files_total 48213',
      '# TYPE backup_last_success_timestamp_seconds gauge',
      'backup_last_success_timestamp_seconds{job="database",target="filer \\"b\\""} 1.7534012345e+09',
      'backup_last_success_timestamp_seconds{job="home",target=""} 1.7534e+09',
      '# TYPE node_textfile_scrape_error gauge',
      'node_textfile_scrape_error 0',
    ],
  )
  const times = lines.filter(line => line.startsWith('node_textfile_mtime_seconds{'))
  assert.deepEqual(
    times.map(line => line.replace(/ [\d.e+]+$/, '')),
    ['backup', 'http'].map(
      name => `node_textfile_mtime_seconds{file="${join(hostTree, 'textfile', name)}.prom"}`,
    ),
  )
})

test('the time of a change has whole seconds', async t => {
  const directory = directoryOf(t, { 'a.prom': 'a 1\n' })
  const { lines } = await readWith(textfile, { directory: [`${directory}/`] })
  assert.ok(
    lines.includes(`node_textfile_mtime_seconds{file="${directory}/a.prom"} 1.7e+09`),
    lines.join('\n'),
  )
})

test('a file with a fault is left out whole, and the others stay', async t => {
  const bad: Record<string, string | Uint8Array> = {
    'timestamp.prom': 'b 1\nc 2 1700000000000\n',
    'unfinished.prom': 'b 1\nc 2',
    'binary.prom': Uint8Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256),
    'long.prom': Buffer.alloc(1 << 20, 'x '),
  }
  for (const [name, content] of Object.entries(bad)) {
    const directory = directoryOf(t, { 'a.prom': 'a 1\n', [name]: content })
    assert.deepEqual(await linesOf(directory), ['a 1', 'node_textfile_scrape_error 1'], name)
  }
  const directory = directoryOf(t, { 'a.prom': 'a 1\n', 'empty.prom': '', 'huge.prom': '' })
  truncateSync(join(directory, 'huge.prom'), 17 * 1024 * 1024)
  mkdirSync(join(directory, 'directory.prom'))
  symlinkSync('nowhere', join(directory, 'dangling.prom'))
  const { lines } = await readWith(textfile, { directory: [directory] })
  assert.deepEqual(
    lines.filter(line => line.includes('mtime_seconds{')).map(line => /(\w+)\.prom/.exec(line)?.[1]),
    ['a', 'empty'],
  )
  assert.ok(lines.includes('node_textfile_scrape_error 1'))
})

test('of two files that contradict each other the first stays', async t => {
  const check = async (a: string, b: string, ...want: string[]) =>
    assert.deepEqual(
      await linesOf(directoryOf(t, { 'a.prom': a, 'b.prom': b, 'c.prom': 'f{f="c"} 3\n' })),
      want,
    )
  const z = 'f{f="c"} 3'
  await check(
    '# HELP e A.\ne{f="a"} 1\n',
    '# HELP e B.\ne{f="b"} 2\n',
    'e{f="a"} 1',
    z,
    'node_textfile_scrape_error 1',
  )
  await check(
    '# HELP e A.\ne{f="a"} 1\n',
    '# HELP e A.\ne{f="b"} 2\n',
    'e{f="a"} 1',
    'e{f="b"} 2',
    z,
    'node_textfile_scrape_error 0',
  )
  await check('e{f="a"} 1\n', 'e{g="b"} 2\n', 'e{f="a"} 1', 'e{g="b"} 2', z, 'node_textfile_scrape_error 0')
  await check(
    '# TYPE e gauge\ne{f="a"} 1\n',
    '# TYPE e counter\ne{f="b"} 2\n',
    'e{f="a"} 1',
    z,
    'node_textfile_scrape_error 0',
  )
  await check('e 1\ne 2\n', 'e 3\n', 'e 1', z, 'node_textfile_scrape_error 0')
  await check('e_sum 1\n', '# TYPE e summary\ne_count 2\n', 'e_sum 1', z, 'node_textfile_scrape_error 1')
})

test('several directories and wildcards', async t => {
  const one = directoryOf(t, { 'a.prom': 'a 1\n' })
  const tree = treeOf(t, {
    'x-1/text/a.prom': 'b 1\n',
    'x-2/text/a.prom': 'c 1\n',
    'y-1/text/a.prom': 'd 1\n',
    'y-1/other/a.prom': 'e 1\n',
  })
  const check = async (directories: string[], ...want: string[]) =>
    assert.deepEqual(await linesOf(...directories), want)
  const well = 'node_textfile_scrape_error 0'
  await check([one, `${tree}/x-1/text`], 'a 1', 'b 1', well)
  await check([`${tree}/x-*/text`], 'b 1', 'c 1', well)
  await check([`${tree}/[x-y]-1/t?xt`], 'b 1', 'd 1', well)
  await check([`${tree}/[^x]-1/*`], 'd 1', 'e 1', well)
  await check([`${tree}/\\x-1/*`], 'b 1', well)
  await check([`${tree}/z*`], 'node_textfile_scrape_error 1')
  await check([`${tree}/[`], 'node_textfile_scrape_error 1')
  await check([], well)
})

test('a directory that is not there has no files, unless it must be there', async () => {
  const check = async (options: Record<string, unknown>, want: number) => {
    const { lines, outcome } = await readWith(textfile, options)
    assert.deepEqual([outcome, lines.at(-1)], ['success', `node_textfile_scrape_error ${want}`])
  }
  await check({ directory: ['/nonexistent/text'] }, 0)
  await check({ directory: ['/nonexistent/*'] }, 0)
  await check({ directory: ['/nonexistent/text'], require_directory: true }, 1)
  await check({ directory: ['/proc/version'] }, 1)
})

test('a path is a directory, or a list of them', () => {
  const { kind } = textfile.options!.directory
  const place = { source: fileSource('f', ''), start: 0, end: 0 }
  const scalar = (text: string): Value => ({
    type: 'scalar',
    value: text,
    text,
    loose: false,
    secrets: [],
    place,
  })
  const check = (value: Value, want: readonly string[] | undefined) => {
    const problems: string[] = []
    const report = {
      secret: false,
      problem: (_: unknown, __: unknown, message: string) => void problems.push(message),
    }
    assert.deepEqual(kind.read(value, 'directory', report as never), want)
    assert.equal(problems.length, want === undefined ? 1 : 0)
  }
  check(scalar('/a,b'), ['/a,b'])
  check(scalar(''), [])
  check({ type: 'list', items: [scalar('/a'), scalar('/b')], place }, ['/a', '/b'])
  check(looseScalar('V', '/a,/b'), ['/a', '/b'])
  check({ type: 'map', entries: [], place }, undefined)
})

/** What a collector shows, scrape after scrape. */
function watch(t: TestContext, directory: string, tree = hostTree) {
  const paths = { procfs: join(tree, 'proc'), sysfs: join(tree, 'sys'), rootfs: tree, udev: tree }
  const host = new HostFiles(paths)
  const reader = textfile.start(
    { enabled: true, directory: [directory], require_directory: true },
    { host, log: silentLogger },
  )
  t.after(() => {
    reader.close?.()
    host.close()
  })
  return async () => {
    const shown: [family: Family, value: number | Distribution][] = []
    await reader.wait!(new AbortController().signal)
    reader.collect({
      set: (family, value) => void shown.push([family, value]),
      setAll: (family, value) => void shown.push([family, value]),
      setDistribution: (family, value) => void shown.push([family, value]),
    })
    return shown.filter(([{ name }]) => name !== 'textfile_mtime_seconds')
  }
}

test('files are followed as they change, and a metric that stays is the same family', async t => {
  const directory = directoryOf(t, { 'a.prom': 'a 1\n', 'b.prom': 'b 1\n' })
  const read = watch(t, directory)
  const path = join(directory, 'a.prom')
  const first = await read()
  assert.deepEqual(
    first.map(([{ name }, value]) => [name, value]),
    [
      ['a', 1],
      ['b', 1],
      ['textfile_scrape_error', 0],
    ],
  )
  assert.deepEqual(await read(), first)
  assert.equal((await read())[0]![0], first[0]![0])
  writeFileSync(path, 'a 2\n')
  assert.deepEqual((await read())[0], [first[0]![0], 2])
  // Another content of the same length in the same tick of the file system's clock.
  for (let i = 3; i < 9; i++) {
    writeFileSync(path, `a ${i}\n`)
    assert.equal((await read())[0]![1], i)
  }
  writeFileSync(path, '# HELP a Other.\n# TYPE a gauge\na 2\n')
  assert.deepEqual((await read())[0]![0], {
    name: 'a',
    type: 'gauge',
    help: 'Other.',
    labels: [],
    unit: '',
    absolute: true,
  })
  rmSync(path)
  assert.deepEqual(
    (await read()).map(([{ name }]) => name),
    ['b', 'textfile_scrape_error'],
  )
  rmSync(directory, { recursive: true })
  assert.deepEqual(
    (await read()).map(([, value]) => value),
    [1],
  )
})

test('files on file systems that may hang are read by the probe, and say why they are not', async t => {
  const directory = directoryOf(t, { 'a.prom': 'a 1\n', 'b.prom': 'b 1', 'c.txt': '' })
  const mountinfo = `30 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n41 30 0:7 / ${directory} rw,relatime - nfs4 x:/y rw\n`
  const tree = treeOf(t, { 'proc/self/mountinfo': mountinfo })
  for (const path of [directory, directory.replace(/text$/, 'tex?')]) {
    const read = watch(t, path, tree)
    let found: unknown[] = []
    // The probe has just been started.
    await until('it has answered', 30_000, async () => {
      found = (await read()).map(([{ name }, value]) => [name, value])
      return found.length > 1
    })
    assert.deepEqual(found, [
      ['a', 1],
      ['textfile_scrape_error', 1],
    ])
  }
  const absent = watch(t, `${directory}/absent`, tree)
  assert.deepEqual(
    (await absent()).map(([, value]) => value),
    [1],
  )
  const { lines } = await readWith(textfile, { directory: [`${directory}/absent`] }, tree)
  assert.equal(lines.at(-1), 'node_textfile_scrape_error 0')
  assert.equal(readFileSync(join(directory, 'a.prom'), 'utf8'), 'a 1\n')
})

/** Of three, each of which takes less than what hangs may. */
async function least(read: () => Promise<void>): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < 3; i++) {
    const before = performance.now()
    await read()
    times.push(performance.now() - before)
  }
  assert.ok(Math.max(...times) < 4500, `they took ${times} ms`)
  return Math.min(...times)
}

test('links from a near directory to one that hangs are not followed here', {
  skip: withoutBindfs,
}, async t => {
  const mounts = await mountBindfs(t, 1)
  const { directory } = mounts
  writeFileSync(join(directory, 'm0', 'far.prom'), 'far 1\n')
  const near = directoryOf(t, { 'a.prom': 'a 1\n' })
  symlinkSync(join(directory, 'm0', 'far.prom'), join(near, 'b.prom'))
  symlinkSync(join(directory, 'm0'), join(near, '..', 'link-1'))
  const file = watch(t, near, '/')
  const whole = watch(t, join(near, '..', 'link-1'), '/')
  const any = watch(t, join(near, '..', 'link-?'), '/')
  const names = async (read: typeof file) => (await read()).map(([{ name }]) => name)
  await until('the file is shown', 30_000, async () => (await names(file)).includes('far'))
  assert.deepEqual(await names(file), ['a', 'far', 'textfile_scrape_error'])
  await mounts.hang()
  for (const [read, want] of [
    [file, ['a', 'textfile_scrape_error']],
    [whole, ['textfile_scrape_error']],
    [any, ['textfile_scrape_error']],
  ] as const) {
    const ms = await least(async () => assert.deepEqual(await names(read), want))
    assert.ok(ms < 1000, `${ms} ms`)
  }
  mounts.answer()
  for (const read of [file, whole, any])
    await until('the file is back', 30_000, async () => (await names(read)).includes('far'))
})

test('a directory that hangs holds up no scrape, and is back when it answers', {
  skip: withoutBindfs,
}, async t => {
  const mounts = await mountBindfs(t, 1)
  const { directory } = mounts
  writeFileSync(join(directory, 'm0', 'a.prom'), 'a 1\n')
  const read = watch(t, join(directory, 'm0'), '/')
  const names = async () => (await read()).map(([{ name }]) => name)
  await until('the file is shown', 30_000, async () => (await names()).includes('a'))
  assert.deepEqual(await names(), ['a', 'textfile_scrape_error'])
  await mounts.hang()
  const ms = await least(async () =>
    assert.deepEqual(
      (await read()).map(([, value]) => value),
      [1],
    ),
  )
  assert.ok(ms < 1000, `${ms} ms`)
  mounts.answer()
  await until('the directory is back', 30_000, async () => (await names()).includes('a'))
})
