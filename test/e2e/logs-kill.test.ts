// owns: process
// A follower of logs that is killed at random loses no line of a file that is rotated all the while.

import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { soak } from '../helpers/soak.ts'

const totalBytes = (soak ? 200 : 20) * 1024 * 1024
const bytesPerSecond = (soak ? 50 : 4) * 1024 * 1024
const fileBytes = (soak ? 10 : 1) * 1024 * 1024
const kills = soak ? 10 : 3
/** A rotator keeps so many: what was written while nobody looked must still be there. */
const keptFiles = 40

const program = join(import.meta.dirname, '..', 'helpers', 'log-following.ts')

test(`${kills} times killed while a log is written and rotated, every line comes, in order`, {
  timeout: 600_000,
}, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-logs-kill-'))
  const log = join(directory, 'app.log')
  const output = join(directory, 'output')
  let child: ChildProcessByStdio<Writable, Readable, null> | undefined
  t.after(() => {
    child?.kill('SIGKILL')
    rmSync(directory, { recursive: true })
  })
  const start = async () => {
    child = spawn(process.execPath, [program, log, join(directory, 'positions'), output], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    return child
  }

  const writer = new RotatedLog(log)
  await start()
  const written = writer.write()
  for (let kill = 0; kill < kills; kill++) {
    // Some live long enough to write down how far they came.
    await sleep(Math.random() * 2500)
    const ended = once(child!, 'exit')
    child!.kill('SIGKILL')
    await ended
    await start()
  }
  await written
  const last = `${writer.lines - 1}`.padStart(10, '0')
  for (let said = ''; !said.includes(`${last} `); said = await lastLines(output)) await sleep(100)
  const ended = once(child!, 'exit')
  const told: Buffer[] = []
  child!.stdout.on('data', (data: Buffer) => told.push(data))
  child!.stdin.end()
  await ended

  let next = 0
  let lines = 0
  const seen = new Set<number>()
  for await (const line of createInterface(createReadStream(output))) {
    const number = /^(\d{10}) x{100,300};$/.exec(line)?.[1]
    if (number === undefined) continue
    lines++
    const value = Number(number)
    if (seen.has(value)) continue
    seen.add(value)
    assert.equal(value, next, `line ${value} comes where ${next} is due`)
    next++
  }
  t.diagnostic(`${writer.lines} lines, ${writer.rotations} rotations, ${lines - next} lines twice`)
  assert.equal(next, writer.lines)
  const state = JSON.parse(Buffer.concat(told).toString())
  assert.equal(state.lostRotations, 0)
  assert.equal(state.truncations, 0)
})

/** A file that is written at a steady rate, and renamed again and again. */
class RotatedLog {
  lines = 0
  rotations = 0
  readonly #path: string
  #fd: number
  #size = 0

  constructor(path: string) {
    this.#path = path
    this.#fd = openSync(path, 'a')
  }

  async write(): Promise<void> {
    const beganMs = performance.now()
    for (let done = 0; done < totalBytes; ) {
      let block = ''
      while (block.length < 128 * 1024) {
        const number = this.lines++
        block += `${`${number}`.padStart(10, '0')} ${'x'.repeat(100 + (number % 200))};\n`
      }
      done += writeSync(this.#fd, block)
      this.#size += block.length
      if (this.#size > fileBytes) this.#rotate()
      await sleep(Math.max(0, (done / bytesPerSecond) * 1000 - (performance.now() - beganMs)))
    }
    closeSync(this.#fd)
  }

  #rotate(): void {
    for (let i = keptFiles; i > 0; i--) {
      const from = i === 1 ? this.#path : `${this.#path}.${i - 1}`
      try {
        renameSync(from, `${this.#path}.${i}`)
      } catch {
        // There are not so many yet.
      }
    }
    closeSync(this.#fd)
    this.#fd = openSync(this.#path, 'a')
    this.#size = 0
    this.rotations++
  }
}

async function lastLines(path: string): Promise<string> {
  const { size } = statSync(path)
  let text = ''
  for await (const part of createReadStream(path, { start: Math.max(0, size - 2000) })) text += part
  return text
}
