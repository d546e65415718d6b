import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../foundation/lib/logger.ts'
import type { Sender } from '../foundation/model/batch.ts'
import { LogRecord } from '../foundation/model/log.ts'
import { resource } from '../foundation/model/resource.ts'
import type { ItemProcessor } from './batcher.ts'
import { logEncoding } from './exporters/otlp/encode-log.ts'
import { metricEncoding } from './exporters/otlp/encode-metric.ts'
import { profileEncoding } from './exporters/otlp/encode-profile.ts'
import { traceEncoding } from './exporters/otlp/encode-trace.ts'
import { RequestBuilder } from './exporters/otlp/request.ts'
import { Pipeline, type PipelineSettings } from './pipeline.ts'

const host = resource({ 'host.name': 'test' })
const shown = resource({ 'host.name': 'shown' })
const scope = { name: 'svc', version: '1' }

/** Hides secrets, moves records to another resource and drops noise; of what it cannot read it throws. */
const process: ItemProcessor<LogRecord> = {
  run(_resource, of, record, out) {
    if (record.body === 'broken') throw new Error('it cannot be read')
    if (record.body === 'noise') {
      out.drop('transform', 1)
      return
    }
    record.body = record.body.replace('secret', '***')
    out.add(shown, of, record)
  },
}

const takesAll: Sender = {
  endpoint: 'test',
  callOf: () => ({ protocol: 'grpc', method: 'test' }),
  send: async () => ({ rejected: 0, message: '' }),
  close: async () => undefined,
}

function settingsFor(sender: Sender | undefined): PipelineSettings {
  const queue = {
    sender,
    batchItems: 1,
    batchBytes: 1 << 20,
    requestBytes: 1 << 20,
    batchTimeoutMs: 5,
    queueBytes: 1 << 20,
    maxAgeMs: 0,
    concurrency: 1,
  }
  return {
    queues: { traces: queue, metrics: queue, logs: queue, profiles: queue },
    retry: { initialMs: 5, maxMs: 50, multiplier: 2, jitter: 0.2, maxElapsedMs: 0 },
    onAuthError: 'park',
    chains: { logs: process },
  }
}

/** What is shown of log records, sent or not, as text. */
function open(sender: Sender | undefined) {
  const seen: string[] = []
  const pipeline = new Pipeline({
    settings: settingsFor(sender),
    builders: {
      traces: new RequestBuilder(traceEncoding),
      metrics: new RequestBuilder(metricEncoding),
      logs: new RequestBuilder(logEncoding),
      profiles: new RequestBuilder(profileEncoding()),
    },
    log: createLogger({ level: 'error', format: 'text', write: () => {} }),
  })
  const unwatch = pipeline.watch('logs', (of, record) => {
    seen.push(`${of.attributes.get('host.name')} ${record.body}`)
  })
  const add = (body: string) => {
    const record = new LogRecord()
    record.body = body
    pipeline.intake('logs').add(host, scope, record)
  }
  return { pipeline, seen, unwatch, add }
}

test('log records are shown as they are sent, and not where they are dropped on the way', async () => {
  const { pipeline, seen, add } = open(takesAll)
  for (const body of ['a secret', 'noise', 'broken', 'plain']) add(body)
  assert.deepEqual(seen, ['shown a ***', 'shown plain'])
  await pipeline.drain(1000)
  assert.equal(pipeline.state('logs').exported, 2)
})

test('what is not sent is shown in the same way: without an endpoint, and while the pipeline ends', async () => {
  const { pipeline, seen, add } = open(undefined)
  add('a secret')
  add('noise')
  await pipeline.drain(0)
  add('another secret')
  assert.deepEqual(seen, ['shown a ***', 'shown another ***'])
  assert.deepEqual(
    [...pipeline.state('logs').dropped],
    [
      ['no_endpoint', 2],
      ['shutdown', 1],
    ],
  )
})

test('several may watch, each for as long as it wants', async () => {
  const { pipeline, seen, unwatch, add } = open(undefined)
  const others: string[] = []
  const stop = pipeline.watch('logs', (_of, record, { name }) => {
    others.push(`${name} ${record.body}`)
  })
  add('first')
  unwatch()
  add('second')
  stop()
  stop()
  add('third')
  await pipeline.drain(0)
  assert.deepEqual([seen, others], [['shown first'], ['svc first', 'svc second']])
})
