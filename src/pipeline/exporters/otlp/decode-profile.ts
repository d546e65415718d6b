import { Attributes, type AttributeValue } from '../../../foundation/model/attributes.ts'
import type {
  Frame,
  FrameType,
  Mapping,
  Profile,
  Sample,
  SpanLink,
} from '../../../foundation/model/profile.ts'
import { periodTypeOf, type ValueType } from '../../../foundation/model/profile-type.ts'
import { attributeValue, readInteger, readValue, type Unfit } from './decode-value.ts'
import { FieldCursor } from './field-cursor.ts'
import { fileHash, frameType, gnuBuildId } from './profile-dictionary.ts'
import { type FieldSchema, messageSchema } from './schema-table.ts'

/** Profile kinds by sample type name. */
const kinds: Readonly<Record<string, Profile['kind']>> = {
  cpu: 'cpu',
  samples: 'cpu',
  alloc_space: 'memory',
  page_faults: 'memory',
  off_cpu: 'off_cpu',
}

const frameTypes: Readonly<Record<FrameType, true>> = {
  native: true,
  kernel: true,
  go: true,
  rust: true,
  cpython: true,
  v8js: true,
  jvm: true,
  ruby: true,
  php: true,
  perl: true,
  dotnet: true,
  beam: true,
  luajit: true,
}

/** Maximum frames of a stack: otherwise a few bytes could create many frames, as locations are shared. */
const maxFrames = 4096

interface Entry {
  readonly key: string
  readonly value: AttributeValue
}

/** Properties of a frame from its function. */
interface Code {
  name: string
  systemName: string
  file: string
}

/** Decodes profiles, with references into the request's dictionary resolved. */
export class ProfileDecoder {
  readonly #unfit: Unfit
  readonly #strings: string[] = []
  readonly #attributes: Entry[] = []
  readonly #mappings: Mapping[] = []
  readonly #functions: Code[] = []
  readonly #locations: (readonly Frame[])[] = []
  readonly #stacks: (readonly Frame[])[] = []
  readonly #links: (SpanLink | undefined)[] = []

  constructor(request: Buffer, unfit: Unfit) {
    this.#unfit = unfit
    const message = messageSchema('ProfilesRequest')
    const cursor = new FieldCursor(request)
    let dictionary: FieldCursor | undefined
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message))
      if (field.name === 'dictionary') dictionary = cursor.message()
    if (dictionary === undefined) return
    this.#readTables(dictionary)
  }

  decode(cursor: FieldCursor, visit: (profile: Profile) => void): void {
    const message = messageSchema('Profile')
    const samples: Sample[] = []
    let type: ValueType = { type: '', unit: '' }
    let periodType: ValueType = type
    let period = 0
    let startUs = 0
    let durationUs = 0
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      switch (field.name) {
        case 'sampleType':
          type = this.#readType(cursor.message())
          break
        case 'samples':
          this.#readSample(cursor.message(), samples)
          break
        case 'timeUnixNano':
          startUs = cursor.number().nanosAsMicros
          break
        case 'durationNano':
          durationUs = cursor.number().nanosAsMicros
          break
        case 'periodType':
          periodType = this.#readType(cursor.message())
          break
        case 'period':
          period = readInteger(cursor.number(), this.#unfit)
          break
        case 'profileId':
          this.#unfit.change('profile identifiers, lost')
          break
        case 'originalPayload':
          this.#unfit.change('original payloads of profiles, lost')
          break
        case 'attributeIndices':
          this.#unfit.change('profile attributes, lost')
          break
      }
    }
    const kind = Object.hasOwn(kinds, type.type) ? kinds[type.type] : undefined
    if (kind === undefined) this.#unfit.leaveOut('profiles of types other than cpu, memory and off_cpu')
    else if (samples.length === 0) this.#unfit.leaveOut('profiles without samples')
    else {
      const distance = this.#periodOf(kind, periodType, period)
      const known = distance > 0 ? { period: distance } : undefined
      visit({ kind, unit: type.unit, startUs, durationUs, ...known, samples })
    }
  }

  /** Period in the unit of the kind, or 0 if it has another type or unit. */
  #periodOf(kind: Profile['kind'], { type, unit }: ValueType, period: number): number {
    if (period === 0) return 0
    const wanted = periodTypeOf({ kind })
    if (period > 0 && wanted !== undefined && wanted.type === type && wanted.unit === unit) return period
    this.#unfit.change('periods of other types, lost')
    return 0
  }

  /** Reads tables in the order of their references, whatever their order in the request. */
  #readTables(dictionary: FieldCursor): void {
    const tables = new Map<string, FieldCursor[]>()
    const message = messageSchema('ProfilesDictionary')
    for (let field = dictionary.nextOf(message); field; field = dictionary.nextOf(message)) {
      if (field.name === 'stringTable') this.#strings.push(dictionary.text())
      else {
        const entries = tables.get(field.name)
        if (entries === undefined) tables.set(field.name, [dictionary.message()])
        else entries.push(dictionary.message())
      }
    }
    const each = (name: string) => tables.get(name) ?? []
    for (const entry of each('attributeTable')) this.#attributes.push(this.#readAttribute(entry))
    for (const entry of each('mappingTable')) this.#mappings.push(this.#readMapping(entry))
    for (const entry of each('functionTable')) this.#functions.push(this.#readFunction(entry))
    for (const entry of each('locationTable')) this.#locations.push(this.#readLocation(entry))
    for (const entry of each('stackTable')) this.#stacks.push(this.#readStack(entry))
    for (const entry of each('linkTable')) this.#links.push(this.#readLink(entry))
  }

  #string(index: number): string {
    return this.#strings[index] ?? ''
  }

  #readType(cursor: FieldCursor): ValueType {
    const message = messageSchema('ValueType')
    const read = { type: '', unit: '' }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      const text = this.#string(cursor.number().int32)
      if (field.name === 'typeStrindex') read.type = text
      else read.unit = text
    }
    return read
  }

  #readMapping(cursor: FieldCursor): Mapping {
    const message = messageSchema('Mapping')
    const made = { path: '', buildId: '', hash: '', start: 0, limit: 0, offset: 0 }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'filenameStrindex') made.path = this.#string(cursor.number().int32)
      else if (field.name === 'attributeIndices')
        this.#eachAttribute(cursor, field, ({ key, value }) => {
          if (key === gnuBuildId) made.buildId = String(value)
          else if (key === fileHash) made.hash = String(value)
          else this.#unfit.change('mapping attributes other than file identifiers, lost')
        })
      else {
        const address = this.#address(cursor)
        if (field.name === 'memoryStart') made.start = address
        else if (field.name === 'memoryLimit') made.limit = address
        else made.offset = address
      }
    }
    return made
  }

  #readFunction(cursor: FieldCursor): Code {
    const message = messageSchema('Function')
    const made: Code = { name: '', systemName: '', file: '' }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      const { int32 } = cursor.number()
      if (field.name === 'nameStrindex') made.name = this.#string(int32)
      else if (field.name === 'systemNameStrindex') made.systemName = this.#string(int32)
      else if (field.name === 'filenameStrindex') made.file = this.#string(int32)
      else if (int32 !== 0) this.#unfit.change('start lines of functions, lost')
    }
    return made
  }

  /** Frames of a location: more than one if functions were inlined. */
  #readLocation(cursor: FieldCursor): Frame[] {
    const message = messageSchema('Location')
    const lines: { code: Code | undefined; line: number }[] = []
    let text = ''
    let place: Pick<Frame, 'mapping' | 'address'> | undefined
    let address = 0
    let type: FrameType | undefined
    let mapping: Mapping | undefined
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'lines') lines.push(this.#readLine(cursor.message()))
      else if (field.name === 'address') {
        address = this.#address(cursor)
        text = `0x${BigInt(cursor.uint64Text).toString(16)}`
      } else if (field.name === 'mappingIndex') {
        const index = cursor.number().int32
        mapping = index === 0 ? undefined : this.#mappings[index]
      } else
        this.#eachAttribute(cursor, field, ({ key, value }) => {
          if (key === frameType && Object.hasOwn(frameTypes, String(value))) type = value as FrameType
          else this.#unfit.change('location attributes other than frame types, lost')
        })
    }
    if (mapping !== undefined) place = address > 0 ? { mapping, address } : { mapping }
    if (lines.length === 0) lines.push({ code: { name: text, systemName: '', file: '' }, line: 0 })
    return lines.map(({ code, line }) => ({
      name: code?.name ?? '',
      file: code?.file ?? '',
      line,
      ...(code?.systemName ? { systemName: code.systemName } : undefined),
      ...(type === undefined ? undefined : { type }),
      ...place,
    }))
  }

  #readLine(cursor: FieldCursor): { code: Code | undefined; line: number } {
    const message = messageSchema('Line')
    let code: Code | undefined
    let line = 0
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'functionIndex') code = this.#functions[cursor.number().int32]
      else if (field.name === 'line') line = cursor.number().int64
      else if (cursor.number().int32 !== 0) this.#unfit.change('columns of lines, lost')
    }
    return { code, line }
  }

  #readLink(cursor: FieldCursor): SpanLink | undefined {
    const message = messageSchema('ProfileLink')
    const link = { traceId: new Uint8Array(), spanId: new Uint8Array() }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'traceId') link.traceId = Uint8Array.from(cursor.bytes())
      else link.spanId = Uint8Array.from(cursor.bytes())
    }
    return link.traceId.length === 16 && link.spanId.length === 8 ? link : undefined
  }

  /** The number at the cursor, rounded to a double. */
  #address(cursor: FieldCursor): number {
    const { uint64 } = cursor.number()
    if (!Number.isSafeInteger(uint64)) this.#unfit.change('addresses over 2^53, rounded')
    return uint64
  }

  #eachAttribute(cursor: FieldCursor, field: FieldSchema, visit: (entry: Entry) => void): void {
    cursor.numbers(field, () => {
      const entry = this.#attributes[cursor.int32]
      if (entry !== undefined) visit(entry)
    })
  }

  #readStack(cursor: FieldCursor): Frame[] {
    const frames: Frame[] = []
    const message = messageSchema('Stack')
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message))
      cursor.numbers(field, () => {
        const inlined = this.#locations[cursor.int32] ?? []
        if (frames.length + inlined.length > maxFrames)
          this.#unfit.change(`stack frames over the limit of ${maxFrames}, lost`)
        else frames.push(...inlined)
      })
    return frames
  }

  #readAttribute(cursor: FieldCursor): Entry {
    const message = messageSchema('KeyValueAndUnit')
    let key = ''
    let value: AttributeValue = ''
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'keyStrindex') key = this.#string(cursor.number().int32)
      else if (field.name === 'value') value = attributeValue(readValue(cursor.message()), this.#unfit)
      else if (cursor.number().int32 !== 0) this.#unfit.change('units of attributes, lost')
    }
    return { key, value }
  }

  /** A sample of the model has one value: the sum of the values by timestamp, each 1 if there are none. */
  #readSample(cursor: FieldCursor, samples: Sample[]): void {
    const message = messageSchema('Sample')
    const attributes = new Attributes()
    let sum = 0
    let values = 0
    let timestamps = 0
    let frames = this.#stacks[0] ?? []
    let link: SpanLink | undefined
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      switch (field.name) {
        case 'stackIndex':
          frames = this.#stacks[cursor.number().int32] ?? []
          break
        case 'attributeIndices':
          this.#eachAttribute(cursor, field, ({ key, value }) => attributes.set(key, value))
          break
        case 'values':
          cursor.numbers(field, () => {
            sum += readInteger(cursor, this.#unfit)
            values++
          })
          break
        case 'timestampsUnixNano':
          cursor.numbers(field, () => timestamps++)
          break
        default:
          link = this.#linkAt(cursor.number().int32)
      }
    }
    if (timestamps > 0) this.#unfit.change('timestamps of samples, lost', timestamps)
    const known = link === undefined ? undefined : { link }
    samples.push({ frames, value: values > 0 ? sum : timestamps, attributes, ...known })
  }

  #linkAt(index: number): SpanLink | undefined {
    if (index === 0) return undefined
    const link = this.#links[index]
    if (link === undefined) this.#unfit.change('sample links without a span identifier, lost')
    return link
  }
}
