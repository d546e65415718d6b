import { Attributes, type AttributeValue } from '../../model/attributes.ts'
import type { Frame, Profile, Sample } from '../../model/profile.ts'
import { attributeValue, readValue, type Unfit } from './decode-value.ts'
import { FieldCursor } from './field-cursor.ts'
import { messageSchema } from './schema-table.ts'

/** Kinds of the model by the names of sample types. */
const kinds: Readonly<Record<string, Profile['kind']>> = {
  cpu: 'cpu',
  samples: 'cpu',
  alloc_space: 'memory',
  page_faults: 'memory',
  off_cpu: 'off_cpu',
}

/** Few bytes could ask for many frames otherwise: locations are shared, and each may have many. */
const maxFrames = 4096

interface Entry {
  readonly key: string
  readonly value: AttributeValue
}

/** Makes profiles of the model, references into the request's dictionary resolved. */
export class ProfileDecoder {
  private readonly unfit: Unfit
  private readonly strings: string[] = []
  private readonly functions: { name: string; file: string }[] = []
  private readonly locations: (readonly Frame[])[] = []
  private readonly stacks: (readonly Frame[])[] = []
  private readonly attributes: Entry[] = []

  constructor(request: Buffer, unfit: Unfit) {
    this.unfit = unfit
    const message = messageSchema('ProfilesRequest')
    const cursor = new FieldCursor(request)
    let dictionary: FieldCursor | undefined
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message))
      if (field.name === 'dictionary') dictionary = cursor.message()
    if (dictionary === undefined) return
    this.readTables(dictionary)
  }

  decode(cursor: FieldCursor, visit: (profile: Profile) => void): void {
    const message = messageSchema('Profile')
    const samples: Sample[] = []
    let type = { name: '', unit: '' }
    let startUs = 0
    let durationUs = 0
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      switch (field.name) {
        case 'sampleType':
          type = this.readType(cursor.message())
          break
        case 'samples':
          this.readSample(cursor.message(), samples)
          break
        case 'timeUnixNano':
          startUs = cursor.number().nanosAsMicros
          break
        case 'durationNano':
          durationUs = cursor.number().nanosAsMicros
          break
        case 'originalPayload':
          this.unfit.change('original payloads of profiles, lost')
          break
        case 'attributeIndices':
          this.unfit.change('attributes of whole profiles, lost')
          break
      }
    }
    const kind = Object.hasOwn(kinds, type.name) ? kinds[type.name] : undefined
    if (kind === undefined) this.unfit.leaveOut('profiles of other types than cpu, memory and off_cpu')
    else if (samples.length === 0) this.unfit.leaveOut('profiles without samples')
    else visit({ kind, unit: type.unit, startUs, durationUs, samples })
  }

  /** What refers to another table is read after it, wherever it stands. */
  private readTables(dictionary: FieldCursor): void {
    const tables = new Map<string, FieldCursor[]>()
    const message = messageSchema('ProfilesDictionary')
    for (let field = dictionary.nextOf(message); field; field = dictionary.nextOf(message)) {
      if (field.name === 'stringTable') this.strings.push(dictionary.text())
      else {
        const entries = tables.get(field.name)
        if (entries === undefined) tables.set(field.name, [dictionary.message()])
        else entries.push(dictionary.message())
      }
    }
    const each = (name: string) => tables.get(name) ?? []
    for (const entry of each('functionTable')) this.functions.push(this.readFunction(entry))
    for (const entry of each('locationTable')) this.locations.push(this.readLocation(entry))
    for (const entry of each('stackTable')) this.stacks.push(this.readStack(entry))
    for (const entry of each('attributeTable')) this.attributes.push(this.readAttribute(entry))
  }

  private string(index: number): string {
    return this.strings[index] ?? ''
  }

  private readType(cursor: FieldCursor): { name: string; unit: string } {
    const message = messageSchema('ValueType')
    const type = { name: '', unit: '' }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      const text = this.string(cursor.number().int32)
      if (field.name === 'typeStrindex') type.name = text
      else type.unit = text
    }
    return type
  }

  private readFunction(cursor: FieldCursor): { name: string; file: string } {
    const message = messageSchema('Function')
    const made = { name: '', file: '' }
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'nameStrindex') made.name = this.string(cursor.number().int32)
      else if (field.name === 'filenameStrindex') made.file = this.string(cursor.number().int32)
    }
    return made
  }

  /** The frames of a location: more than one where functions were inlined. */
  private readLocation(cursor: FieldCursor): Frame[] {
    const message = messageSchema('Location')
    const frames: Frame[] = []
    let address = ''
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'lines') frames.push(this.readLine(cursor.message()))
      else if (field.name === 'address') address = `0x${BigInt(cursor.number().uint64Text).toString(16)}`
      else if (field.name === 'mappingIndex' && cursor.number().int32 !== 0)
        this.unfit.change('mappings of locations, lost')
    }
    return frames.length > 0 ? frames : [{ name: address, file: '', line: 0 }]
  }

  private readLine(cursor: FieldCursor): Frame {
    const message = messageSchema('Line')
    let made: { name: string; file: string } | undefined
    let line = 0
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'functionIndex') made = this.functions[cursor.number().int32]
      else if (field.name === 'line') line = cursor.number().int64
    }
    return { name: made?.name ?? '', file: made?.file ?? '', line }
  }

  private readStack(cursor: FieldCursor): Frame[] {
    const frames: Frame[] = []
    const message = messageSchema('Stack')
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message))
      cursor.numbers(field, () => {
        const inlined = this.locations[cursor.int32] ?? []
        if (frames.length + inlined.length > maxFrames)
          this.unfit.change(`frames beyond ${maxFrames} of a stack, lost`)
        else frames.push(...inlined)
      })
    return frames
  }

  private readAttribute(cursor: FieldCursor): Entry {
    const message = messageSchema('KeyValueAndUnit')
    let key = ''
    let value: AttributeValue = ''
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      if (field.name === 'keyStrindex') key = this.string(cursor.number().int32)
      else if (field.name === 'value') value = attributeValue(readValue(cursor.message()), this.unfit)
      else if (cursor.number().int32 !== 0) this.unfit.change('units of attributes, lost')
    }
    return { key, value }
  }

  /** A sample of the model has one value: the sum of those by time, of which each is 1 where none is given. */
  private readSample(cursor: FieldCursor, samples: Sample[]): void {
    const message = messageSchema('Sample')
    const attributes = new Attributes()
    let sum = 0
    let values = 0
    let timestamps = 0
    let frames = this.stacks[0] ?? []
    for (let field = cursor.nextOf(message); field; field = cursor.nextOf(message)) {
      switch (field.name) {
        case 'stackIndex':
          frames = this.stacks[cursor.number().int32] ?? []
          break
        case 'attributeIndices':
          cursor.numbers(field, () => {
            const entry = this.attributes[cursor.int32]
            if (entry !== undefined) attributes.add(entry.key, entry.value)
          })
          break
        case 'values':
          cursor.numbers(field, () => {
            sum += cursor.int64
            values++
          })
          break
        case 'timestampsUnixNano':
          cursor.numbers(field, () => timestamps++)
          break
        default:
          if (cursor.number().int32 !== 0) this.unfit.change('links of samples, lost')
      }
    }
    if (timestamps > 0) this.unfit.change('timestamps of samples, lost', timestamps)
    samples.push({ frames, value: values > 0 ? sum : timestamps, attributes })
  }
}
