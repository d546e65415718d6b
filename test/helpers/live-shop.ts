// A shop as people run them, under load: nginx before a Node.js program that asks Redis and PostgreSQL.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Tree } from './agent-process.ts'
import { freePort, listening, pause } from './program.ts'
import { startPostgres } from './servers/postgres.ts'
import { startRedis } from './servers/redis.ts'
import { startProxy } from './web-servers.ts'

export interface LiveShop {
  /** Of nginx, the program, Redis and PostgreSQL. */
  readonly ports: readonly [front: number, shop: number, redis: number, postgres: number]
  /** What the program writes a line to for each request. */
  readonly log: string
  /** One request through nginx, with a `traceparent` if told; resolves with its status. */
  ask(path: string, traceparent?: string): Promise<number>
  close(): Promise<void>
}

const paths = ['/cart', '/cart', '/items/17', '/items/4', '/slow', '/fail']

/** Starts it, and asks it `perSecond` times a second until it is closed. */
export async function startLiveShop(perSecond: number): Promise<LiveShop> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-live-shop-'))
  const log = join(directory, 'shop.log')
  writeFileSync(log, '')
  const [redis, postgres] = [await startRedis(), await startPostgres()]
  const shop = await freePort()
  const front = await freePort()
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'shop-server.ts'), `${shop}`, `${redis.port}`, `${postgres.port}`, log],
    { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, NODE_OPTIONS: '' } },
  )
  const ended = new Promise(resolve => child.once('close', resolve))
  await listening(shop)
  const proxy = await startProxy(front, shop)
  const agent = new Agent({ keepAlive: true })
  const ask = (path: string, traceparent?: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = traceparent === undefined ? {} : { traceparent }
      const sent = request({ host: '127.0.0.1', port: front, path, agent, headers }, response => {
        response.resume().on('end', () => resolve(response.statusCode!))
      })
      sent.on('error', reject).end()
    })
  let going = true
  const load = (async () => {
    for (let i = 0; going; i++) {
      void ask(paths[i % paths.length]!).catch(() => undefined)
      await pause(1000 / perSecond)
    }
  })()
  return {
    ports: [front, shop, redis.port, postgres.port],
    log,
    ask,
    close: async () => {
      going = false
      await load
      agent.destroy()
      await proxy.close()
      child.kill('SIGKILL')
      await ended
      await redis.close()
      await postgres.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** The configuration of an agent that follows a shop's metrics, profiles and lines; what it stores is in `directory`. */
export async function everythingOf(shop: LiveShop, directory: string): Promise<Tree> {
  return {
    agent: {
      nodeexporter: { listen_address: `127.0.0.1:${await freePort()}` },
      profiling: { enabled: true },
      logs: {
        enabled: true,
        container_logs: false,
        paths: [shop.log],
        position_file: join(directory, 'positions'),
      },
      discovery: { enabled: false },
    },
    pipeline: { export: { queue: { directory: join(directory, 'queue') } } },
  }
}
