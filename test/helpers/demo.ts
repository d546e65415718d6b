// The demo of deploy/demo, with an agent that is there already.

import { spawn } from 'node:child_process'
import { join, resolve } from 'node:path'
import { freePort } from './program.ts'

export const demoDirectory = resolve(import.meta.dirname, '../../deploy/demo')

export interface Demo {
  readonly ports: { readonly shop: number; readonly orders: number; readonly stock: number }
  /** The group of all its processes. */
  readonly group: number
  /** What it said. */
  readonly talk: () => string
  /** Ends it as Ctrl-C does, and resolves with its exit code. */
  end(): Promise<number | null>
}

/** Ports of services that nobody listens at. */
export async function demoPorts(): Promise<Demo['ports']> {
  return { shop: await freePort(), orders: await freePort(), stock: await freePort() }
}

interface DemoOptions {
  readonly ports: Demo['ports']
  /** Where svc listens. */
  readonly agentPort: number
  /** How often the shop is asked. */
  readonly perSecond: number
  /** Where the directory of its logs is made; left out: where those of all programs are. */
  readonly directory?: string
}

/** Starts it. */
export function startDemo({ ports, agentPort, perSecond, directory }: DemoOptions): Demo {
  const env = {
    SHOP_PORT: `${ports.shop}`,
    ORDERS_PORT: `${ports.orders}`,
    STOCK_PORT: `${ports.stock}`,
    SVC_PORT: `${agentPort}`,
    LOAD_PER_SECOND: `${perSecond}`,
    ...(directory !== undefined && { TMPDIR: directory }),
  }
  // In a group of its own, as a terminal has it.
  const child = spawn(join(demoDirectory, 'run'), {
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let talk = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      talk += text
    })
  const closed = new Promise<number | null>(done => child.once('close', code => done(code)))
  const end = async () => {
    try {
      process.kill(-child.pid!, 'SIGINT')
    } catch {
      // It has ended.
    }
    return closed
  }
  return { ports, group: child.pid!, talk: () => talk, end }
}
