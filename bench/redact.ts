/**
 * What looking into a log line for personal data costs, beside a plain regular expression for each of the same types.
 *
 * at most: 2 min
 */
import { LogRecord } from '../src/foundation/model/log.ts'
import { resource } from '../src/foundation/model/resource.ts'
import { build } from '../src/foundation/schema/tree.ts'
import type { Stage } from '../src/pipeline/processors/processor.ts'
import { type RuleType, redaction } from '../src/pipeline/processors/redact/settings.ts'
import { redact } from '../src/pipeline/processors/redact.ts'
import { report } from './lib/figures.ts'

const lineBytes = 217
const words =
  'the user request completed with status code while processing payment for order item in cluster region east service ' +
  'handler database timeout retry connection pool exhausted upstream returned error'
const vocabulary = words.split(' ')

let seed = 7
function random(below: number): number {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
  return seed % below
}

/** About 1.2 % of the lines hold something. */
function line(i: number): string {
  let text = `2026-11-20T23:${String(i % 60).padStart(2, '0')}:12.345Z INFO [worker-${i % 32}] `
  const id = random(2 ** 31)
    .toString(16)
    .padStart(8, '0')
    .repeat(4)
  const end = `trace_id=${id} duration_ms=${(random(1e7) / 1e3).toFixed(3)} order=${random(1e9)}`
  while (text.length + end.length < lineBytes - 8) text += `${vocabulary[random(vocabulary.length)]} `
  text += end
  if (i % 200 === 0) text += ` email=alice.smith${i}@example.com`
  if (i % 250 === 0) text += ' ssn 856-45-6789'
  if (i % 300 === 0) text += ' card 4111 1111 1111 1111'
  if (i % 400 === 0) text += ` ip 10.12.0.${i % 255}`
  // As a log source would hand it over: flat.
  return Buffer.from(text).toString('latin1')
}

const lines = Array.from({ length: 20_000 }, (_, i) => line(i))
const bytes = lines.reduce((sum, text) => sum + text.length, 0)

const patterns: Readonly<Record<string, RegExp>> = {
  email: /[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}/g,
  ssn: /\b\d{3}-\d{2}-\d{4}\b/g,
  credit_card: /\b\d(?:[ -]?\d){12,18}\b/g,
  ipv4: /\b(?:\d{1,3}\.){3}\d{1,3}\b/g,
  phone: /\+\d{1,3}[ -]?(?:\(?\d{1,4}\)?[ -]?){2,5}\d{2,4}/g,
  iban: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/g,
  jwt: /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  api_key: /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
}

function stageOf(types: readonly string[]): Stage {
  const config = build(redaction, new Map())
  const rules = types.map(type => ({
    name: type,
    type: type as RuleType,
    pattern: '',
    enabled: true,
    mode: '' as const,
    replacement: '',
  }))
  const env = {
    signal: 'logs',
    log: undefined as never,
    installKey: () => new Uint8Array(32),
    nowMs: () => performance.now(),
  } as const
  return redact.compile({ pii_redaction: { ...config, enabled: true, rules } }, env, undefined)!
}

const record = new LogRecord()
const shop = resource({ 'service.name': 'shop' })
function withStage(stage: Stage): (text: string) => void {
  return text => {
    record.body = text
    stage.log!(record, shop)
  }
}

const expressions = Object.values(patterns)
const ways: Readonly<Record<string, (text: string) => void>> = {
  '8_rules.svc': withStage(stageOf(Object.keys(patterns))),
  '8_rules.regexp': text => {
    record.body = text
    for (const expression of expressions) record.body = record.body.replace(expression, '[REDACTED]')
  },
  'all_types.svc': withStage(stageOf([])),
}

const times = new Map(Object.keys(ways).map(name => [name, [] as number[]]))
for (let round = 0; round < 9; round++) {
  for (const [name, way] of Object.entries(ways)) {
    const { user, system } = process.cpuUsage()
    for (const text of lines) way(text)
    const used = process.cpuUsage()
    // The first two make the code hot.
    if (round > 1) times.get(name)!.push((used.user + used.system - user - system) / lines.length)
  }
}
console.log(`lines of ${(bytes / lines.length).toFixed(0)} bytes`)
for (const [name, measured] of times) report(`redact.${name}.cpu_us_per_line`, measured, 'us', 'less')
