// A process with the agent's own pipeline and a backlog, for tests that measure it from outside:
//   node test/helpers/backlog-shipper.ts '{"env": {...}, "directory": "DIR", "records": 1000, "bytes": 100}'
// Each line on standard input is answered by one line of JSON: a `BacklogState`. With the first one it begins to take in
// so many numbered log records, of so many bytes more each, and one span and one gauge for every hundred, and never more
// at a time than its queues have taken over. It ends with its input.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Attributes } from '../../src/foundation/model/attributes.ts'
import { resource } from '../../src/foundation/model/resource.ts'
import { signals } from '../../src/foundation/model/signal.ts'
import { Span } from '../../src/foundation/model/span.ts'
import { Shipment } from './shipment.ts'

export interface Backlog {
  readonly env: Readonly<Record<string, string>>
  /** Of the queue on disk. */
  readonly directory: string
  readonly records: number
  readonly bytes: number
}

export interface BacklogState {
  /** Log records that were taken in so far. */
  readonly made: number
  readonly logs: SignalState
  readonly traces: SignalState
  readonly metrics: SignalState
}

/** In items, where nothing else is said. */
export interface SignalState {
  readonly collected: number
  readonly exported: number
  readonly dropped: number
  readonly queued: number
  readonly queuedBytes: number
}

async function main(): Promise<void> {
  const { env, directory, records, bytes } = JSON.parse(process.argv[2]!) as Backlog
  const shipment = new Shipment({ env, directory })
  const { pipeline } = shipment
  const host = resource({ 'host.name': 'test' })
  const scope = { name: 'test', version: '1' }
  const span = new Span()
  const points = [{ attributes: new Attributes(), startUs: 0, timeUs: 1, value: 1 }]
  const gauge = { kind: 'gauge', name: 'g', description: '', unit: '1', points } as const
  const most = Math.max(1, Math.floor(150_000 / (bytes + 50)))
  const tell = (): void => {
    const of = (signal: 'logs' | 'traces' | 'metrics'): SignalState => {
      const { collected, exported, droppedTotal: dropped, queued, queuedBytes } = pipeline.state(signal)
      return { collected, exported, dropped, queued, queuedBytes }
    }
    const { made } = shipment
    const state: BacklogState = { made, logs: of('logs'), traces: of('traces'), metrics: of('metrics') }
    writeSync(1, `${JSON.stringify(state)}\n`)
  }
  const input = createInterface(process.stdin)
  input.on('line', tell)
  const began = new Promise<void>(resolve => input.once('line', () => resolve()))
  const ended = new Promise<void>(resolve => input.once('close', resolve))

  writeSync(1, '{}\n')
  await began
  while (shipment.made < records) {
    for (let i = 0; i < most && shipment.made < records; i++) {
      if (shipment.made % 100 === 0) {
        pipeline.intake('traces').add(host, scope, span)
        pipeline.intake('metrics').add(host, scope, gauge)
      }
      shipment.add(1, bytes)
    }
    while (signals.some(signal => pipeline.state(signal).accepted < pipeline.state(signal).collected))
      await new Promise(resolve => setTimeout(resolve, 1))
  }
  await ended
  await shipment.end()
}

if (import.meta.main) await main()
