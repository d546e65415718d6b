// The rules of the profiles signal that a receiver may hold a request to: those of profiles.proto (OTLP 1.11), of the
// semantic conventions 1.44, and of the conformance checker of the OpenTelemetry profiling group.
import assert from 'node:assert/strict'
import { decodeRequest } from './otlp-proto.ts'

/** A message as `decodeRequest` gives it: what is not on the wire is not there. */
type Message = Readonly<Record<string, unknown>>

/** Tables by the fields that refer to them; those of texts end with `Strindex`. */
const references: Readonly<Record<string, string>> = {
  stackIndex: 'stackTable',
  linkIndex: 'linkTable',
  mappingIndex: 'mappingTable',
  functionIndex: 'functionTable',
  locationIndices: 'locationTable',
  attributeIndices: 'attributeTable',
}

const tables = [...new Set(Object.values(references)), 'stringTable']
const buildIds = ['gnu', 'go', 'htlhash'].map(kind => `process.executable.build_id.${kind}`)

/** Fails with all that is wrong with an export request of profiles. */
export function assertConformant(body: Uint8Array): void {
  assert.deepEqual(profileFaults(decodeRequest('profiles', body)), [])
}

/** What is wrong with an export request of profiles, each fault with its place. */
export function profileFaults(request: Message): string[] {
  const checker = new Checker((request.dictionary ?? {}) as Message)
  checker.request(request)
  checker.tables()
  return checker.faults
}

class Checker {
  readonly faults: string[] = []
  readonly #dictionary: Message
  readonly #used = new Map(tables.map(name => [name, new Set([0])]))

  constructor(dictionary: Message) {
    this.#dictionary = dictionary
  }

  request(request: Message): void {
    for (const [resource, at] of this.#filled(request, 'resourceProfiles', 'the request'))
      for (const [scope, inside] of this.#filled(resource, 'scopeProfiles', at))
        for (const [profile, place] of this.#filled(scope, 'profiles', inside)) this.#profile(profile, place)
  }

  tables(): void {
    for (const name of tables) this.#orphans(name)
    for (const name of tables) {
      this.#zero(name)
      this.#duplicates(name)
      // What nothing refers to must be in order, too.
      for (const [i, entry] of this.#table(name).entries()) this.#follow(entry, `${name}[${i}]`)
    }
    for (const [mapping, at] of this.#entries('mappingTable')) this.#mapping(mapping, at)
    for (const [code, at] of this.#entries('functionTable')) {
      if (!code.nameStrindex && !code.systemNameStrindex && !code.filenameStrindex)
        this.#fault(at, 'a function without any name')
      if (Number(code.startLine ?? 0) < 0) this.#fault(at, 'a negative line')
    }
    for (const [location, at] of this.#entries('locationTable'))
      for (const line of (location.lines ?? []) as Message[])
        if (Number(line.line ?? 0) < 0 || Number(line.column ?? 0) < 0) this.#fault(at, 'a negative line')
    for (const [link, at] of this.#entries('linkTable'))
      if (bytes(link.traceId) !== 16 || bytes(link.spanId) !== 8)
        this.#fault(at, 'identifiers of other lengths than 16 and 8')
  }

  #fault(at: string, what: string): void {
    this.faults.push(`${at}: ${what}`)
  }

  #table(name: string): readonly unknown[] {
    return (this.#dictionary[name] ?? []) as readonly unknown[]
  }

  #text(index: unknown): unknown {
    return this.#table('stringTable')[Number(index ?? 0)]
  }

  /** The entries of a table after its zero value, each with its place. */
  #entries(name: string): [Message, string][] {
    const found = this.#table(name).map((entry, i): [Message, string] => [entry as Message, `${name}[${i}]`])
    return found.slice(1)
  }

  #filled(message: Message, name: string, at: string): [Message, string][] {
    const list = (message[name] ?? []) as Message[]
    if (list.length === 0) this.#fault(at, `no ${name}`)
    return list.map((each, i) => [each, at === 'the request' ? `${name}[${i}]` : `${at}.${name}[${i}]`])
  }

  #profile(profile: Message, at: string): void {
    const { samples = [], ...own } = profile as { samples?: Message[] }
    this.#follow(own, at)
    if (this.#text((profile.sampleType as Message | undefined)?.typeStrindex) === '')
      this.#fault(at, 'no type of samples')
    if ('profileId' in profile && bytes(profile.profileId) !== 16)
      this.#fault(at, 'an identifier of another length than 16')
    if ('originalPayload' in profile !== 'originalPayloadFormat' in profile)
      this.#fault(at, 'an original payload without its format, or a format without payload')
    const shapes = new Set<string>()
    for (const [i, sample] of samples.entries())
      shapes.add(this.#sample(profile, sample, `${at}.samples[${i}]`))
    shapes.delete('')
    if (shapes.size > 1) this.#fault(at, `samples of several shapes: ${[...shapes].join(', ')}`)
  }

  /** Its shape; empty where it has none. */
  #sample(profile: Message, sample: Message, at: string): string {
    this.#follow(sample, at)
    const values = (sample.values ?? []) as string[]
    const timestamps = (sample.timestampsUnixNano ?? []) as string[]
    const start = BigInt((profile.timeUnixNano ?? 0) as string)
    const end = start + BigInt((profile.durationNano ?? 0) as string)
    for (const time of timestamps.map(BigInt))
      if (time < start || time >= end) this.#fault(at, 'a timestamp outside the window of the profile')
    if (values.length === 0 && timestamps.length === 0) {
      this.#fault(at, 'neither values nor timestamps')
      return ''
    }
    if (timestamps.length === 0) {
      if (values.length > 1) this.#fault(at, 'several values without timestamps')
      return 'values'
    }
    if (values.length === 0) return 'timestamps'
    if (values.length !== timestamps.length) this.#fault(at, 'not as many values as timestamps')
    return 'values with timestamps'
  }

  #mapping(mapping: Message, at: string): void {
    const start = BigInt((mapping.memoryStart ?? 0) as string)
    const limit = BigInt((mapping.memoryLimit ?? 0) as string)
    if (start >= limit && (start !== 0n || limit !== 0n)) this.#fault(at, 'its limit is not above its start')
    const keys = ((mapping.attributeIndices ?? []) as number[]).map(index => this.#keyOf(index))
    if (!keys.some(key => buildIds.includes(String(key)))) this.#fault(at, 'no identifier of its file')
  }

  #keyOf(attribute: number): unknown {
    return this.#text((this.#table('attributeTable')[attribute] as Message | undefined)?.keyStrindex)
  }

  #orphans(name: string): void {
    const used = this.#used.get(name)!
    for (const index of this.#table(name).keys())
      if (!used.has(index)) this.#fault(`${name}[${index}]`, 'nothing refers to it')
  }

  #zero(name: string): void {
    const first = this.#table(name)[0]
    const zeroLink = {
      traceId: Buffer.alloc(16).toString('base64'),
      spanId: Buffer.alloc(8).toString('base64'),
    }
    const want = name === 'stringTable' ? '' : name === 'linkTable' ? zeroLink : {}
    if (JSON.stringify(first) !== JSON.stringify(want)) this.#fault(`${name}[0]`, 'not the zero value')
  }

  #duplicates(name: string): void {
    const seen = new Map<string, number>()
    for (const [i, entry] of this.#table(name).entries()) {
      const text = JSON.stringify(entry, (key, value) =>
        key === 'attributeIndices' ? [...value].sort((a, b) => a - b) : value,
      )
      const before = seen.get(text)
      if (before !== undefined) this.#fault(`${name}[${i}]`, `the same as [${before}]`)
      seen.set(text, i)
    }
  }

  /** Follows all references from a message on, each entry once. */
  #follow(value: unknown, at: string): void {
    if (Array.isArray(value)) for (const each of value) this.#follow(each, at)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [key, held] of Object.entries(value)) {
      const table = key.endsWith('Strindex') ? 'stringTable' : references[key]
      if (table === undefined) this.#follow(held, at)
      else for (const index of [held].flat()) this.#refer(table, index as number, `${at}.${key}`)
      if (key === 'attributeIndices') this.#uniqueKeys(held as number[], at)
    }
  }

  #refer(table: string, index: number, at: string): void {
    const entries = this.#table(table)
    const used = this.#used.get(table)!
    if (index < 0 || index >= entries.length)
      this.#fault(at, `${index} is outside of the ${entries.length} of ${table}`)
    else if (!used.has(index)) {
      used.add(index)
      this.#follow(entries[index], `${table}[${index}]`)
    }
  }

  #uniqueKeys(indices: readonly number[], at: string): void {
    const keys = indices.map(index => this.#keyOf(index))
    for (const [i, key] of keys.entries())
      if (keys.indexOf(key) < i) this.#fault(at, `the attribute ${key} twice`)
  }
}

/** Of base64. */
function bytes(text: unknown): number {
  return Buffer.from(String(text ?? ''), 'base64').length
}
