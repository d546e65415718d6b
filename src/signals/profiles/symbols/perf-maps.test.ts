import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chownSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir, uptime } from 'node:os'
import { join } from 'node:path'
import test, { after } from 'node:test'
import fc from 'fast-check'
import { withoutRoot } from '../../../../test/helpers/host-needs.ts'
import { soak } from '../../../../test/helpers/soak.ts'
import { PerfMap } from './perf-map.ts'
import { PerfMaps } from './perf-maps.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-perf-maps-'))
after(() => rmSync(scratch, { recursive: true }))

const user = process.getuid?.() ?? 0

/** A process as /proc shows it, known to itself as 7. */
function process7(pid: number, uid = user): string {
  const tmp = join(scratch, String(pid), 'root', 'tmp')
  mkdirSync(tmp, { recursive: true })
  writeFileSync(join(scratch, String(pid), 'status'), `Name:\tx\nUid:\t0\t${uid}\t0\t0\nNSpid:\t${pid}\t7\n`)
  return join(tmp, 'perf-7.map')
}

test('code that a runtime made is named by its map, with 0x in front of numbers or not', () => {
  writeFileSync(
    process7(100),
    '7f0000001000 40 LazyCompile:*leaf /app/x.js:3\n0x7f0000002000 0x10 Lfoo;::bar\n',
  )
  const maps = new PerfMaps(scratch)
  const check = (address: number, want: string | undefined) => assert.equal(maps.find(100, address), want)
  check(0x7f0000001000, 'LazyCompile:*leaf /app/x.js:3')
  check(0x7f000000103f, 'LazyCompile:*leaf /app/x.js:3')
  check(0x7f0000001040, undefined)
  check(0x7f0000002008, 'Lfoo;::bar')
  check(0, undefined)
  assert.equal(maps.find(101, 0x7f0000001000), undefined)
  assert.ok(maps.bytes > 0)
  maps.forget(100)
})

test('the map of a Node.js that writes one is read', { timeout: 60_000 }, async () => {
  const program = 'function leafOfTest(){return 1} console.log(leafOfTest()); setInterval(() => {}, 1000)'
  const child = spawn(process.execPath, ['--perf-basic-prof', '-e', program], { cwd: scratch })
  const path = `/tmp/perf-${child.pid}.map`
  try {
    await once(child.stdout, 'data')
    const line = /^([0-9a-f]+) [0-9a-f]+ (\S*leafOfTest.*)$/m.exec(readFileSync(path, 'utf8'))
    assert.ok(line)
    const found = new PerfMaps().find(child.pid as number, Number.parseInt(line[1] as string, 16) + 1)
    assert.equal(found, line[2])
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
    rmSync(path, { force: true })
  }
})

test('what is written later is read later, whole lines only', () => {
  const path = process7(110)
  writeFileSync(path, '1000 10 first\n2000 10 sec')
  const look = () => new PerfMaps(scratch).find(110, 0x2000)
  assert.equal(look(), undefined)
  appendFileSync(path, 'ond\n')
  assert.equal(look(), 'second')
})

test('an ended process keeps its names, and another one of its number has its own', async () => {
  const path = process7(130)
  writeFileSync(path, '1000 10 first\n')
  const maps = new PerfMaps(scratch)
  const later = () => new Promise(resolve => setTimeout(resolve, 1100))
  assert.equal(maps.find(130, 0x1000), 'first')
  const ended = join(scratch, 'ended')
  renameSync(join(scratch, '130'), ended)
  await later()
  assert.equal(maps.find(130, 0x1000), 'first')
  renameSync(ended, join(scratch, '130'))
  unlinkSync(path)
  await later()
  assert.equal(maps.find(130, 0x1000), undefined)
})

test('of entries that overlap the one told last holds', () => {
  const map = new PerfMap()
  const add = (lines: string) => map.add(Buffer.from(lines))
  add('1000 100 old\n1080 100 newer\n')
  assert.deepEqual([map.at(0x1070), map.at(0x1090), map.at(0x1170)], ['old', 'newer', 'newer'])
  add('1000 40 newest\n')
  assert.deepEqual([map.at(0x1010), map.at(0x1050)], ['newest', 'old'])
  add('1000 100 last\n')
  assert.deepEqual([map.at(0x1010), map.at(0x1090)], ['last', 'last'])
  map.clear()
  assert.equal(map.at(0x1010), undefined)
})

test("a map that is a link, another user's or no file is not read", { skip: withoutRoot }, () => {
  const look = () => new PerfMaps(scratch).find(120, 0x1000)
  const path = process7(120, 1234)
  writeFileSync(path, '1000 10 found\n')
  assert.equal(look(), 'found')
  chownSync(path, 1234, 0)
  assert.equal(look(), 'found')
  chownSync(path, 1235, 0)
  assert.equal(look(), undefined)
  unlinkSync(path)
  writeFileSync(`${path}.other`, '1000 10 found\n')
  symlinkSync(`${path}.other`, path)
  assert.equal(look(), undefined)
  unlinkSync(path)
  mkdirSync(path)
  assert.equal(look(), undefined)
})

test('the map that an earlier process of the same number left is not read', () => {
  const path = process7(140)
  writeFileSync(path, '1000 10 found\n')
  const look = () => new PerfMaps(scratch).find(140, 0x1000)
  const stat = (startMs: number) => {
    const ticks = Math.round((startMs - Date.now() + uptime() * 1000) / 10)
    writeFileSync(join(scratch, '140', 'stat'), `140 (a b) c) R ${'0 '.repeat(18)}${ticks} 0\n`)
  }
  stat(Date.now() - 60_000)
  assert.equal(look(), 'found')
  utimesSync(path, Date.now() / 1000 - 120, Date.now() / 1000 - 120)
  assert.equal(look(), undefined)
})

test('of a map that is too large the newest part is read, whole lines only', () => {
  const path = process7(150)
  const file = openSync(path, 'w')
  ftruncateSync(file, 2 ** 36)
  writeSync(file, '\n3000 10 last\n', 2 ** 36)
  closeSync(file)
  assert.equal(new PerfMaps(scratch).find(150, 0x3000), 'last')
  const map = new PerfMap()
  for (let i = 0; i < 3 * 2 ** 17; i += 1024)
    map.add(
      Buffer.from(
        Array.from({ length: 1024 }, (_, k) => `${(16 * (i + k)).toString(16)} 10 n${i + k}\n`).join(''),
      ),
    )
  assert.deepEqual(
    [map.at(0), map.at(16 * (3 * 2 ** 17 - 1)), map.at(16 * 2 ** 17)],
    [undefined, `n${3 * 2 ** 17 - 1}`, `n${2 ** 17}`],
  )
  assert.ok(map.bytes < 32 * 1024 * 1024)
})

test('memory for maps is bounded', () => {
  const maps = new PerfMaps(scratch)
  const lines = Array.from(
    { length: 30_000 },
    (_, i) => `${(i * 64 + 4096).toString(16)} 40 ${'name'.repeat(20)}${i}\n`,
  )
  for (let pid = 200; pid < 209; pid++) {
    writeFileSync(process7(pid), lines.join(''))
    assert.ok(maps.find(pid, 4096)?.endsWith('name0'))
  }
  assert.ok(maps.bytes < 40 * 1024 * 1024)
})

test('whatever bytes a map has, there is an answer', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f]{1,14} [0-9a-f]{1,9} .{0,5}$/))),
      lines => {
        const map = new PerfMap()
        map.add(Buffer.from(`${lines.join('\n')}\n`))
        for (const address of [0, 1, 0x1000, 2 ** 47]) assert.ok(map.at(address)?.length !== 0)
      },
    ),
    { numRuns: soak ? 20_000 : 200 },
  )
})

test('a pipe in the place of a map is not waited for', { timeout: 10_000 }, () => {
  const path = process7(800)
  execFileSync('mkfifo', [path])
  assert.equal(new PerfMaps(scratch).find(800, 0x1000), undefined)
})

test('who has hundreds of maps keeps them only while nobody else has one', () => {
  const maps = new PerfMaps(scratch, pid => ({ group: '', user: pid < 3000 ? '1000' : '0' }))
  const make = (pid: number) => writeFileSync(process7(pid), `1000 10 of_${pid}\n`)
  for (let pid = 2000; pid < 2300; pid++) {
    make(pid)
    assert.equal(maps.find(pid, 0x1000), `of_${pid}`)
  }
  assert.ok(maps.bytes <= 16 * 2 ** 20)
  for (let pid = 3000; pid < 3010; pid++) {
    make(pid)
    maps.find(pid, 0x1000)
  }
  const { taken } = maps.losses
  assert.ok(taken >= 54)
  // Those of the neighbour stay, whatever else comes.
  for (let pid = 2300; pid < 2400; pid++) maps.find(pid, 0x1000)
  for (let pid = 3000; pid < 3010; pid++) rmSync(join(scratch, String(pid)), { recursive: true })
  for (let pid = 3000; pid < 3010; pid++) assert.equal(maps.find(pid, 0x1000), `of_${pid}`)
  assert.ok(maps.shed(1 << 20) >= 1 << 20)
  assert.equal(maps.shed(1 << 30), 15 << 20)
  assert.equal(maps.bytes, 0)
})
