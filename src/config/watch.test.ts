import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
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
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  contentState,
  contentStates,
  noSuchFile,
  readContent,
  specialFile,
} from '../foundation/lib/file-content.ts'
import { FileWatch } from './watch.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-watch-'))
after(() => rmSync(directory, { recursive: true, force: true }))

const day = 86_400_000

/** A watch that looks only when it is told to. */
async function watching(...paths: string[]) {
  const seen = { reports: 0 }
  const files = await contentStates(paths)
  const watch = new FileWatch({ files, intervalMs: day, settleMs: day, changed: () => seen.reports++ })
  return {
    /** The reports of so many looks. */
    async looks(count: number): Promise<number> {
      const before = seen.reports
      for (let i = 0; i < count; i++) await watch.look()
      return seen.reports - before
    },
    watch,
  }
}

let folders = 0
function folder(): string {
  const path = join(directory, String(folders++))
  mkdirSync(path)
  return path
}

test('a file that was written anew is reported once, after it stayed the same for two looks', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'a')
  const { looks, watch } = await watching(file)
  assert.equal(await looks(3), 0)
  writeFileSync(file, 'b')
  assert.equal(await looks(1), 0)
  assert.equal(await looks(1), 1)
  assert.equal(await looks(3), 0)
  watch.stop()
})

test('a file that is renamed over it is seen, and touching it is not a change', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'a')
  const { looks, watch } = await watching(file)
  utimesSync(file, 1, 1)
  writeFileSync(file, 'a')
  writeFileSync(`${file}.new`, 'a')
  renameSync(`${file}.new`, file)
  assert.equal(await looks(3), 0)
  // Same length, same times: only the content tells.
  writeFileSync(`${file}.new`, 'b')
  utimesSync(`${file}.new`, 1, 1)
  renameSync(`${file}.new`, file)
  assert.equal(await looks(3), 1)
  watch.stop()
})

test('the links that a kubelet swaps lead to the new content', async () => {
  const volume = folder()
  const release = (name: string, text: string) => {
    mkdirSync(join(volume, name))
    writeFileSync(join(volume, name, 'config.yaml'), text)
    symlinkSync(name, join(volume, '..data_tmp'))
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
  }
  release('..2024_1', 'a')
  symlinkSync('..data/config.yaml', join(volume, 'config.yaml'))
  const { looks, watch } = await watching(join(volume, 'config.yaml'))
  release('..2024_2', 'b')
  rmSync(join(volume, '..2024_1'), { recursive: true })
  assert.equal(await looks(3), 1)
  release('..2024_3', 'b')
  assert.equal(await looks(3), 0)
  watch.stop()
})

test('a file that is being written counts when it is whole', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'old')
  let read = ''
  const files = await contentStates([file])
  const changed = () => {
    read = readFileSync(file, 'utf8')
  }
  const watch = new FileWatch({ files, intervalMs: day, settleMs: day, changed })
  const writer = openSync(file, 'w')
  for (let i = 0; i < 20; i++) {
    await watch.look()
    assert.equal(read, '')
    writeSync(writer, `line ${i}\n`)
  }
  closeSync(writer)
  await watch.look()
  await watch.look()
  assert.match(read, /line 19\n$/)
  watch.stop()
})

test('a file that is deleted is reported once, and again when it is back with something new', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'a')
  const { looks, watch } = await watching(file)
  unlinkSync(file)
  assert.equal(await looks(5), 1)
  writeFileSync(file, 'b')
  assert.equal(await looks(5), 1)
  // Gone for less than two looks.
  unlinkSync(file)
  assert.equal(await looks(1), 0)
  writeFileSync(file, 'b')
  assert.equal(await looks(5), 0)
  watch.stop()
})

test('what is acknowledged needs no report, and its files are those that are looked at', async () => {
  const place = folder()
  const [one, two] = [join(place, 'one'), join(place, 'two')]
  writeFileSync(one, 'a')
  writeFileSync(two, 'a')
  const { looks, watch } = await watching(one)
  writeFileSync(one, 'b')
  assert.equal(await looks(1), 0)
  watch.acknowledge(await contentStates([one, two]))
  assert.equal(await looks(3), 0)
  writeFileSync(two, 'b')
  assert.equal(await looks(3), 1)
  watch.acknowledge(await contentStates([one]))
  writeFileSync(two, 'c')
  assert.equal(await looks(3), 0)
  watch.stop()
})

test('an acknowledgement during a look wins over what the look read before', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'a')
  const { looks, watch } = await watching(file)
  writeFileSync(file, 'b')
  assert.equal(await looks(1), 0)
  const looking = watch.look()
  watch.acknowledge(await contentStates([file]))
  await looking
  assert.equal(await looks(3), 0)
  watch.stop()
})

test('the timer looks by itself, and not any more once it is stopped', async () => {
  const file = join(folder(), 'config.yaml')
  writeFileSync(file, 'a')
  const files = await contentStates([file])
  let watch!: FileWatch
  await new Promise<void>(resolve => {
    watch = new FileWatch({ files, intervalMs: 5, settleMs: 5, changed: resolve })
    writeFileSync(file, 'b')
    // The timer of the watch alone would not keep the test alive.
    const alive = setInterval(() => undefined, 1000)
    after(() => clearInterval(alive))
  })
  watch.stop()
  writeFileSync(file, 'c')
  await watch.look()
  await watch.look()
  assert.equal(await contentState(file), await contentState(file))
})

test('the state of a file is the same however it is read', async () => {
  const place = folder()
  const check = async (path: string, want?: string) => {
    const { state } = readContent(path, false)
    assert.equal(await contentState(path), state, path)
    if (want !== undefined) assert.equal(state, want, path)
  }
  for (const [i, size] of [0, 1, 65_535, 65_536, 65_537, 1024 * 1024].entries()) {
    const file = join(place, String(i))
    writeFileSync(file, Buffer.alloc(size, 'ab'))
    await check(file)
    assert.match(await contentState(file), /^[0-9a-f]{64}$/)
  }
  writeFileSync(join(place, 'large'), Buffer.alloc(1024 * 1024 + 1))
  await check(join(place, 'large'), '!EFBIG')
  await check(join(place, 'gone'), noSuchFile)
  await check(join(place, '0', 'below'), '!ENOTDIR')
  await check(place, '!EISDIR')
  await check('/dev/null', specialFile)
  await check('/proc/self/environ')
  // Nobody writes to it: opening it the usual way would wait for ever.
  const pipe = join(place, 'pipe')
  execFileSync('mkfifo', [pipe])
  await check(pipe, specialFile)
})
