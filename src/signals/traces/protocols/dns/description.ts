import { BoundedMap } from '../../../../foundation/lib/bounded-map.ts'
import { Interner } from '../../../../foundation/lib/interner.ts'
import { ipText } from '../../../../foundation/lib/ip-text.ts'
import { small } from '../../../../foundation/lib/small-tables.ts'
import type { Call } from '../../../../foundation/model/call.ts'
import { SpanKind } from '../../../../foundation/model/span.ts'
import type { StreamConnection } from '../../../../foundation/model/stream.ts'
import { dnsLookup } from '../durations.ts'
import { codeName, type Message, recordType, typeName } from './message.ts'

/** Maximum number of distinct names in the metric. */
const mostNames = 200
const otherName = '_OTHER'
/** Maximum characters of `dns.question.name`. */
const longestName = 255

/** Describes lookups. All sockets share it and its texts. */
export class LookupDescription {
  readonly #names = small(new Interner({ slots: 2_048, maxLength: longestName }))
  readonly #found = new Set<string>()
  /** Lists of addresses, by the bytes that they are made from. */
  readonly #keys = small(new Interner({ slots: 1_024, maxLength: 512 }))
  readonly #answers = small(new BoundedMap<string, readonly string[]>(512))

  /** `stream`: over TCP. */
  describeQuestion(call: Call, connection: StreamConnection, message: Message, stream: boolean): void {
    const { attributes } = call
    const type = typeName(message.type)
    call.name = type.spanName
    call.kind = SpanKind.client
    call.signalType = 'dns'
    call.duration = dnsLookup
    attributes.add('dns.question.name', this.#questionName(message))
    attributes.add('dns.question.type', type.name)
    const { serverAddress, serverPort } = connection
    if (serverAddress !== '') {
      attributes.add('server.address', serverAddress)
      attributes.add('network.peer.address', serverAddress)
      if (serverPort !== 0) {
        attributes.add('server.port', serverPort)
        attributes.add('network.peer.port', serverPort)
      }
    }
    attributes.add('network.transport', stream ? 'tcp' : 'udp')
  }

  describeAnswer(call: Call, message: Message): void {
    const { attributes, dimensions } = call
    const code = codeName(message.code)
    if (message.addresses > 0) attributes.add('dns.answers', this.#addresses(message))
    attributes.add('dns.response_code', code)
    this.describeEnd(call, message.code === 0 ? '' : code)
    dimensions.add('dns.response_code', code)
  }

  /** `error` '': the name was found. */
  describeEnd(call: Call, error: string): void {
    const name = String(call.attributes.get('dns.question.name'))
    const type = call.attributes.get('dns.question.type')
    // Names of addresses are unbounded, and a name that does not exist could be anything.
    if (error === '' && type !== typeName(recordType.ptr).name && this.#found.size < mostNames)
      this.#found.add(name)
    call.dimensions.add('dns.question.name', this.#found.has(name) ? name : otherName)
    if (error === '') return
    call.error = error
    call.attributes.add('error.type', error)
    call.dimensions.add('error.type', error)
  }

  #questionName(message: Message): string {
    return this.#names.intern(message.name, 0, Math.min(message.nameLength, longestName))
  }

  #addresses(message: Message): readonly string[] {
    const key = this.#keys.intern(message.addressBytes, 0, message.addressLength)
    let list = this.#answers.get(key)
    if (list === undefined) {
      list = textsOf(message.addressBytes, message.addressLength)
      this.#answers.set(key, list)
    }
    return list
  }
}

/** Each address is preceded by its length. */
function textsOf(bytes: Buffer, length: number): string[] {
  const texts: string[] = []
  for (let at = 0; at < length; at += 1 + bytes[at]!)
    texts.push(ipText(bytes.subarray(at + 1, at + 1 + bytes[at]!)))
  return texts
}
