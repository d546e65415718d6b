// Stages as the configuration makes them, and items to put through them.
import assert from 'node:assert/strict'
import { createLogger } from '../../src/foundation/lib/logger.ts'
import { Attributes, type AttributeValue } from '../../src/foundation/model/attributes.ts'
import { LogRecord } from '../../src/foundation/model/log.ts'
import type { Metric } from '../../src/foundation/model/metric.ts'
import type { Profile } from '../../src/foundation/model/profile.ts'
import type { Signal } from '../../src/foundation/model/signal.ts'
import { Span } from '../../src/foundation/model/span.ts'
import { formatProblems, type Problem, reportInto } from '../../src/foundation/schema/problem.ts'
import {
  type Branch,
  branch,
  build,
  type Infer,
  readBranch,
  type Settings,
} from '../../src/foundation/schema/tree.ts'
import { fileSource } from '../../src/foundation/schema/value.ts'
import { parseYaml } from '../../src/foundation/schema/yaml-place.ts'
import type { Processor, ProcessorEnv, Stage } from '../../src/pipeline/processors/processor.ts'

/** Settings from YAML, with what is wrong in them as `FILE:LINE:COLUMN: key: message`. */
export function read<B extends Branch>(keys: B, yaml: string): { settings: Infer<B>; problems: string } {
  const problems: Problem[] = []
  const report = reportInto(problems)
  const settings: Settings = new Map()
  const value = parseYaml(fileSource('config.yaml', yaml), {}, report)
  if (value !== undefined) readBranch(keys, value, { written: '', canonical: '' }, settings, report)
  return { settings: build(keys, settings), problems: formatProblems(problems) }
}

/** Settings that must be good, below a key of their own. */
export function settingsOf<const N extends string, B extends Branch>(
  name: N,
  keys: B,
  yaml: string,
): { readonly [K in N]: Infer<B> } {
  const { settings, problems } = read(branch('Test.', { [name]: keys }), yaml)
  assert.equal(problems, '')
  return settings as { readonly [K in N]: Infer<B> }
}

export const installKey = new Uint8Array(32).fill(7)

export function stageOf<S>(
  processor: Processor<S>,
  settings: S,
  signal: Signal,
  before?: Stage,
): Stage | undefined {
  const env: ProcessorEnv = {
    signal,
    log: createLogger({ level: 'error', format: 'text', write: () => {} }),
    installKey: () => installKey,
    nowMs: () => performance.now(),
  }
  return processor.compile(settings, env, before)
}

/** What a stage counted, as `rule outcome` by number. */
export function countersOf(stage: Stage): Record<string, number> {
  const counters: Record<string, number> = {}
  stage.counters((rule, outcome, total) => {
    counters[`${rule} ${outcome}`] = total
  })
  return counters
}

type Entries = Readonly<Record<string, AttributeValue>>

export function spanWith(entries: Entries, fields: Partial<Span> = {}): Span {
  const span = new Span()
  const { traceId, ...others } = fields
  Object.assign(span, others)
  if (traceId !== undefined) span.traceId.set(traceId)
  fill(span.attributes, entries)
  return span
}

export function recordWith(entries: Entries, fields: Partial<LogRecord> = {}): LogRecord {
  const record = new LogRecord()
  const { traceId, ...others } = fields
  Object.assign(record, others)
  if (traceId !== undefined) record.traceId.set(traceId)
  fill(record.attributes, entries)
  return record
}

/** A gauge with one series for each set of attributes. */
export function gaugeWith(name: string, ...series: readonly Entries[]): Metric {
  const points = series.map(entries => ({
    attributes: Attributes.of(entries),
    startUs: 0,
    timeUs: 1,
    value: 1,
  }))
  return { kind: 'gauge', name, description: '', unit: '', points }
}

/** A profile with one sample for each set of attributes. */
export function profileWith(...samples: readonly Entries[]): Profile {
  return {
    kind: 'cpu',
    unit: 'count',
    startUs: 0,
    durationUs: 1,
    samples: samples.map(entries => ({ frames: [], value: 1, attributes: Attributes.of(entries) })),
  }
}

function fill(attributes: Attributes, entries: Entries): void {
  for (const [key, value] of Object.entries(entries)) attributes.set(key, value)
}
