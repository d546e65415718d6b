// owns: ports
// The live page under load: its window is full, and the agent's memory stands still.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import type { OverviewLine } from '../../src/view/api/ui/documents.ts'
import { AgentProcess } from './agent-process.ts'
import { withoutBpf } from './compile-bpf.ts'
import { everythingOf, startLiveShop } from './live-shop.ts'
import { withoutPostgres } from './servers/postgres.ts'
import { withoutRedis } from './servers/redis.ts'

export const withoutFullWindow: string | false = withoutBpf || withoutRedis || withoutPostgres

const maxBytes = 2 * 2 ** 20
/** Seconds until the window is half full, which its young spans are. */
const patience = 120
/**
 * What the heap breathes in and out, and what the host's programs make the agent learn. Some 400 spans come each second:
 * those that stayed as objects would show at once, and in an hour a dozen bytes for each.
 */
const boundMiB = 12

/** Follows a document as an open page does. */
async function* lines<T>(t: TestContext, agent: AgentProcess, path: string): AsyncGenerator<T> {
  const url = `http://127.0.0.1:${agent.port}/ui/api/${path}`
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { agent: false }, resolve).on('error', reject),
  )
  t.after(() => response.destroy())
  assert.equal(response.statusCode, 200, path)
  for await (const line of createInterface(response)) yield JSON.parse(line) as T
}

/** MiB that no file stands behind. */
function anonymousMiB(pid: number): number {
  const told = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1')
  return Number(/^Anonymous:\s+(\d+) kB/m.exec(told)![1]) / 1024
}

/** In seconds, from when the window is half full. */
export interface Stretch {
  readonly seconds: number
  /** The least of so many measurements at its start is held against the least at its end: garbage comes and goes. */
  readonly few: number
  /** Where the collector does not come by in time another stretch is measured: what leaks grows in each of them. */
  readonly most: number
}

/** Fails where the window grows beyond its bound, or the agent takes more memory after a stretch with a full window. */
export async function assertStableMemory(t: TestContext, { seconds, few, most }: Stretch): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-ui-memory-'))
  const close: (() => unknown)[] = [() => rmSync(directory, { recursive: true })]
  // The last first: the agent writes into the folder until it has ended.
  t.after(async () => {
    for (const each of close.toReversed()) await each()
  })
  const shop = await startLiveShop(50)
  close.push(() => shop.close())
  const agent = await AgentProcess.start({
    ports: shop.ports,
    // With its own heap: one that may grow would hide what stays.
    shipped: true,
    config: {
      ...(await everythingOf(shop, directory)),
      self_telemetry: { ui: { window: '1m', max_memory: '2Mi' } },
    },
  })
  close.push(() => agent.stop())
  // Those who look make the agent compute all that there is.
  for (const path of ['traces', 'map', 'logs', 'profiles', 'service?name=nginx'])
    void (async () => {
      const following = lines(t, agent, `${path}${path.includes('?') ? '&' : '?'}follow=1`)
      while (!(await following.next()).done);
    })().catch(() => undefined) // it ends with the agent
  const anonymous: number[] = []
  let waited = 0
  let grown = Number.POSITIVE_INFINITY
  for await (const line of lines<OverviewLine>(t, agent, 'overview?follow=1&seconds=60')) {
    if (line.kind !== 'tick') continue
    const { window_bytes: bytes, window_max_bytes: bound } = line.agent
    assert.equal(bound, maxBytes)
    assert.ok(bytes <= maxBytes, `the window takes ${bytes} bytes of ${maxBytes}`)
    if (bytes < maxBytes / 2) {
      assert.ok(++waited < patience, `the window does not fill: ${bytes} bytes of ${maxBytes}`)
      continue
    }
    anonymous.push(anonymousMiB(agent.pid))
    if (anonymous.length % seconds > 0) continue
    const stretch = anonymous.slice(-seconds)
    grown = Math.min(...stretch.slice(-few)) - Math.min(...stretch.slice(0, few))
    if (grown < boundMiB || anonymous.length === most * seconds) break
  }
  const shown = anonymous.filter((_, i) => i % few === 0).map(each => each.toFixed(0))
  assert.ok(
    grown < boundMiB,
    `with a full window the agent took ${grown.toFixed(1)} MiB more after ${seconds} s: ${shown.join(' ')}`,
  )
}
