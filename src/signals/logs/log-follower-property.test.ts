// Whatever happens to a log and to who follows it: nothing is lost, and nothing comes out of order.

import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, mkdtempSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Following, plainSource } from '../../../test/helpers/log-following.ts'
import { soak } from '../../../test/helpers/soak.ts'

const scenarios = soak ? 600 : 60
const atOnce = 60
const steps = 25

/** Numbers that seem random (mulberry32), the same ones for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

class Scenario {
  readonly #random: (below: number) => number
  readonly #directory = mkdtempSync(join(tmpdir(), 'svc-logs-any-'))
  readonly #log = join(this.#directory, 'app.log')
  readonly #positions = join(this.#directory, 'state')
  readonly #seed: number
  readonly #story: string[] = []
  readonly #lines: string[] = []
  #written = ''
  #following: Following | undefined
  #isSecured = true

  constructor(seed: number) {
    this.#seed = seed
    this.#random = randomOf(seed)
  }

  async run(): Promise<void> {
    appendFileSync(this.#log, '')
    await this.#restart()
    for (let step = 0; step < steps; step++) {
      await this.#step()
      await sleep([0, 0, 1, 15, 300][this.#random(5)]!)
    }
    if (this.#following === undefined) await this.#restart()
    this.#append('the end\n')
    const end = performance.now() + 30_000
    while (this.#lines.at(-1)?.endsWith('the end') !== true && performance.now() < end) await sleep(50)
    this.#check()
  }

  async end(): Promise<void> {
    await this.#following?.stop()
    rmSync(this.#directory, { recursive: true })
  }

  async #step(): Promise<void> {
    const what = ['append', 'append', 'append', 'part', 'rotate', 'rotate', 'empty', 'stop', 'crash', 'start']
    const chosen = what[this.#random(what.length)]!
    this.#story.push(chosen)
    if (chosen === 'append') this.#append(this.#words(1 + this.#random(4)))
    else if (chosen === 'part') this.#append(this.#words(1).slice(0, -1))
    else if (chosen === 'rotate') this.#rotate(() => renameSync(this.#log, `${this.#log}.1`))
    else if (chosen === 'empty') await this.#empty()
    else if (chosen === 'start') await this.#restart()
    else if (this.#following !== undefined) {
      this.#isSecured = chosen === 'stop'
      await this.#following.stop()
      this.#following = undefined
    }
  }

  #words(count: number): string {
    const begin = this.#written.split('\n').length
    return Array.from(
      { length: count },
      (_, i) => `${this.#seed} ${begin + i} ${'x'.repeat(this.#random(200))}\n`,
    ).join('')
  }

  #append(text: string): void {
    // A part has its end in the same file.
    appendFileSync(this.#log, text)
    this.#written += text
  }

  #rotate(last: () => void): void {
    if (/[^\n]$/.test(this.#written)) this.#append(' end\n')
    appendFileSync(this.#log, '')
    for (let i = 30; i > 0; i--)
      try {
        renameSync(`${this.#log}.${i}`, `${this.#log}.${i + 1}`)
      } catch {
        // There are not so many yet.
      }
    last()
    if (this.#random(3) > 0) appendFileSync(this.#log, '')
  }

  /** Once it was read. */
  async #empty(): Promise<void> {
    if (this.#following === undefined) return
    if (/[^\n]$/.test(this.#written)) this.#append(' end\n')
    // Without a file at its path a log that was rotated while nobody looked is read later.
    appendFileSync(this.#log, '')
    const last = this.#written.split('\n').at(-2)
    const end = performance.now() + 60_000
    while (last !== undefined && !this.#lines.includes(last) && performance.now() < end) await sleep(20)
    this.#rotate(() => {
      copyFileSync(this.#log, `${this.#log}.1`)
      truncateSync(this.#log)
    })
  }

  async #restart(): Promise<void> {
    if (this.#following !== undefined) return
    this.#isSecured = true
    this.#following = await Following.start([this.#log], this.#positions, {
      secured: () => (this.#isSecured ? Promise.resolve() : Promise.reject(new Error('killed'))),
      sources: [plainSource([this.#log], line => this.#lines.push(line))],
    })
  }

  #check(): void {
    const wanted = this.#written.split('\n').slice(0, -1)
    const short = (line: string | undefined) => line?.slice(0, 12)
    const got = [...new Set(this.#lines)]
    const at = wanted.findIndex((line, i) => line !== got[i])
    const where = `${short(got[at])} comes where ${short(wanted[at])} is due`
    assert.ok(
      at < 0 && got.length === wanted.length,
      `seed ${this.#seed}, ${this.#story.join(' ')}: ${where}`,
    )
  }
}

test(`${scenarios} logs that are written, rotated and emptied, by followers that end, come whole and in order`, {
  timeout: 900_000,
}, async () => {
  const first = Number(process.env.SVC_SEED ?? 1)
  const seeds = process.env.SVC_SEED ? [first] : Array.from({ length: scenarios }, (_, i) => i + 1)
  const faults: string[] = []
  const run = async () => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const scenario = new Scenario(seed)
      await scenario.run().catch((error: Error) => faults.push(error.message))
      await scenario.end()
    }
  }
  await Promise.all(Array.from({ length: atOnce }, run))
  assert.deepEqual(faults, [])
})
