import type { AttributeValue } from '../../foundation/model/attributes.ts'
import type { Resource } from '../../foundation/model/resource.ts'

/** UTF-16 code units of the name of a service, of a key, of a value, and of all attributes as JSON. */
const mostNameLength = 255
const mostKeyLength = 128
const mostValueLength = 512
const mostTextLength = 4096
/** Of one, besides its texts. */
const objectBytes = 320

/** Who made spans: what its spans share. */
export interface Origin {
  /** `service.name`. */
  service: string
  pid: number
  /** Its attributes as JSON, those for which there is room. */
  attributes: string
  /** Its place in the list; -1: no span needs it any longer. */
  number: number
  /** Spans that are kept. */
  spans: number
}

/** The resources of the spans that are kept. Nothing of a resource itself is held. */
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

  /** Whose number a record holds. */
  at(number: number): Origin {
    return this.#all[number]!
  }

  /** The origin of a span that is going to be kept; the caller adds it to `spans`. */
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

  /** A span of it is gone. */
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

  /** Names of the services of which there are spans, in their order. */
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

/** As if every character took two bytes. */
function bytesOf({ service, attributes }: Origin): number {
  return objectBytes + 2 * (service.length + attributes.length)
}

/** A text of its own: a part of a long one would keep all of it. */
export function ownText(text: string, mostLength: number): string {
  const part = text.length <= mostLength ? text : text.slice(0, mostLength)
  const own = Buffer.from(part).toString()
  // Half of a pair of surrogates is no UTF-8.
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
