import type { AttributeValue } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'

/** Limits in UTF-16 code units for a service name, a key, a value, and all attributes as JSON. */
const mostNameLength = 255
const mostKeyLength = 128
const mostValueLength = 512
const mostTextLength = 4096
/** Memory of an origin besides its texts. */
const objectBytes = 320

/** The resource shared by spans. */
export interface Origin {
  /** `service.name`. */
  service: string
  pid: number
  /** Attributes as JSON, as many as fit. */
  attributes: string
  /** Index in the list; -1: no longer used by any span. */
  number: number
  /** Number of its kept spans. */
  spans: number
}

/** The resources of the kept spans, copied: no resource itself is referenced. */
export class SpanOrigins {
  readonly #byResource = new WeakMap<Resource, Origin>()
  readonly #all: (Origin | undefined)[] = []
  readonly #free: number[] = []
  readonly #maxBytes: number
  readonly #makeRoom: () => boolean
  #bytes = 0
  #last: Resource | undefined
  #lastOrigin: Origin | undefined

  /** `makeRoom` drops a span; false: there is none. */
  constructor(maxBytes: number, makeRoom: () => boolean) {
    this.#maxBytes = maxBytes
    this.#makeRoom = makeRoom
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The origin with the number in a record. */
  at(number: number): Origin {
    return this.#all[number]!
  }

  /** The origin of a span to be kept; the caller increments `spans`. */
  of(resource: Resource): Origin {
    const last = this.#lastOrigin
    if (resource === this.#last && last !== undefined && last.number >= 0) return last
    let origin = this.#byResource.get(resource)
    if (origin === undefined) {
      origin = { service: '', pid: 0, attributes: '', number: -1, spans: 0 }
      this.#byResource.set(resource, origin)
    }
    if (origin.number < 0) this.#enter(origin, resource)
    this.#last = resource
    this.#lastOrigin = origin
    return origin
  }

  /** One of its spans was dropped. */
  release(number: number): void {
    const origin = this.#all[number]!
    if (--origin.spans > 0) return
    this.#bytes -= bytesOf(origin)
    this.#all[number] = undefined
    this.#free.push(number)
    origin.number = -1
    origin.service = ''
    origin.attributes = ''
  }

  /** Names of the services with spans, sorted. */
  services(): string[] {
    const names = new Set<string>()
    for (const origin of this.#all)
      if (origin !== undefined && origin.service !== '') names.add(origin.service)
    return [...names].sort()
  }

  #enter(origin: Origin, { attributes }: Resource): void {
    const pid = attributes.get('process.pid')
    const service = attributes.get('service.name')
    origin.service = typeof service === 'string' ? ownText(service, mostNameLength) : ''
    origin.pid = typeof pid === 'number' && Number.isInteger(pid) && pid > 0 ? pid : 0
    origin.attributes = jsonOf(attributes.keys, attributes.values, attributes.size)
    const bytes = bytesOf(origin)
    while (this.#bytes + bytes > this.#maxBytes && this.#makeRoom());
    this.#bytes += bytes
    origin.number = this.#free.pop() ?? this.#all.length
    this.#all[origin.number] = origin
  }
}

/** Assumes two bytes per character. */
function bytesOf({ service, attributes }: Origin): number {
  return objectBytes + 2 * (service.length + attributes.length)
}

/** A copy: a substring would keep the whole parent text alive. */
export function ownText(text: string, mostLength: number): string {
  const part = text.length <= mostLength ? text : text.slice(0, mostLength)
  const own = Buffer.from(part).toString()
  // Half a surrogate pair is not valid UTF-8.
  return own === part ? own : Buffer.from(part, 'utf16le').toString('utf16le')
}

function jsonOf(keys: readonly string[], values: readonly AttributeValue[], size: number): string {
  let json = ''
  for (let i = 0; i < size; i++) {
    const key = keys[i]!
    if (key.length > mostKeyLength) continue
    const entry = `${JSON.stringify(key)}:${JSON.stringify(shortened(values[i]!))}`
    if (json.length + entry.length + 3 > mostTextLength) continue
    json += json === '' ? entry : `,${entry}`
  }
  return ownText(`{${json}}`, mostTextLength)
}

function shortened(value: AttributeValue): AttributeValue {
  if (typeof value === 'string') return value.slice(0, mostValueLength)
  if (typeof value !== 'object') return value
  return value.slice(0, 64).map(each => each.slice(0, mostValueLength))
}
