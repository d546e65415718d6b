// Responses of XML-RPC (xmlrpc.com/spec, 1999), as far as daemons use it for their state.

export type XmlRpcValue =
  | string
  | number
  | boolean
  | readonly XmlRpcValue[]
  | ReadonlyMap<string, XmlRpcValue>

/** Maximum nesting; real responses have three levels. */
const mostDepth = 16

/** Document of a call without parameters. */
export function xmlRpcCall(method: string): string {
  return `<?xml version="1.0"?><methodCall><methodName>${method}</methodName><params></params></methodCall>`
}

/** Result of a call. Throws an error with a reason for an invalid response, or a fault response. */
export function parseXmlRpc(text: string): XmlRpcValue {
  const plain = text.replace(/^\s*<\?xml[^<>]*\?>/, '').replace(/<([A-Za-z][\w.]{0,60}) ?\/>/g, '<$1></$1>')
  const reader = new Reader(plain)
  const value = reader.inside('methodResponse', () =>
    reader.next === 'fault'
      ? reader.inside('fault', () => fail(readValue(reader, 0)))
      : reader.inside('params', () => reader.inside('param', () => readValue(reader, 0))),
  )
  reader.end()
  return value
}

function fail(fault: XmlRpcValue): never {
  const what = fault instanceof Map ? fault.get('faultString') : undefined
  throw new Error(`fault response: ${String(what ?? 'no reason given').slice(0, 200)}`)
}

function readValue(reader: Reader, depth: number): XmlRpcValue {
  if (depth > mostDepth) throw new Error('invalid response: nested too deeply')
  return reader.inside('value', () => {
    const type = reader.next
    // Text without a type is a string.
    if (type === '') return reader.text()
    if (type === 'array') {
      return reader.inside('array', () =>
        reader.inside('data', () => {
          const items: XmlRpcValue[] = []
          while (reader.next === 'value') items.push(readValue(reader, depth + 1))
          return items
        }),
      )
    }
    if (type === 'struct') {
      return reader.inside('struct', () => {
        const members = new Map<string, XmlRpcValue>()
        while (reader.next === 'member') {
          reader.inside('member', () => {
            const name = reader.inside('name', () => reader.text())
            members.set(name, readValue(reader, depth + 1))
          })
        }
        return members
      })
    }
    return scalar(
      type,
      reader.inside(type, () => reader.text()),
    )
  })
}

function scalar(type: string, text: string): XmlRpcValue {
  if (type === 'string') return text
  const word = text.trim()
  if (/^(int|i4|i8)$/.test(type) && /^[-+]?\d{1,19}$/.test(word)) return Number(word)
  if (type === 'boolean' && /^[01]$/.test(word)) return word === '1'
  if (type === 'double' && /^[-+]?\d{1,40}(\.\d{1,40})?$/.test(word)) return Number(word)
  throw new Error(`invalid response: value ${JSON.stringify(word.slice(0, 40))} of type ${type.slice(0, 40)}`)
}

/** Reads tags and texts. Responses have no attributes, comments or other sections. */
class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Name of the next opening tag, after white space; '' if text or a closing tag comes first. */
  get next(): string {
    const tag = /<([A-Za-z][\w.]{0,60})>/y
    tag.lastIndex = this.#pastSpace()
    return tag.exec(this.#text)?.[1] ?? ''
  }

  /** Result of `read` for the content of a tag. */
  inside<T>(tag: string, read: () => T): T {
    this.#take(`<${tag}>`)
    const value = read()
    this.#take(`</${tag}>`)
    return value
  }

  /** Text up to the next tag. */
  text(): string {
    const end = this.#text.indexOf('<', this.#at)
    const raw = this.#text.slice(this.#at, end < 0 ? undefined : end)
    this.#at += raw.length
    return raw.replace(/&(?:(\w{1,5})|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g, decode)
  }

  end(): void {
    if (this.#pastSpace() < this.#text.length) throw new Error('invalid response: data after the end')
  }

  #take(tag: string): void {
    const start = this.#pastSpace()
    if (!this.#text.startsWith(tag, start))
      throw new Error(`invalid XML-RPC response: unexpected ${tag.slice(0, 40)}`)
    this.#at = start + tag.length
  }

  #pastSpace(): number {
    let at = this.#at
    while (this.#text.charCodeAt(at) <= 32) at++
    return at
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function decode(whole: string, name?: string, decimal?: string, hex?: string): string {
  if (name !== undefined) return Object.hasOwn(entities, name) ? entities[name]! : whole
  const code = decimal === undefined ? Number.parseInt(hex!, 16) : Number(decimal)
  return code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd'
}
