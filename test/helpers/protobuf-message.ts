import { fieldKey, WireType, Writer } from '../../src/foundation/lib/protobuf.ts'

type Field = readonly [number, string | number | Uint8Array]

/** A message of protobuf. */
export function message(...fields: Field[]): Uint8Array {
  const out = new Writer(256)
  for (const [field, value] of fields) {
    if (typeof value === 'number') out.int(fieldKey(field, WireType.varint), value)
    else if (typeof value === 'string') out.string(fieldKey(field, WireType.bytes), value)
    else out.bytes(fieldKey(field, WireType.bytes), value)
  }
  return out.written()
}

/** A map of texts. */
export function entries(field: number, texts: Readonly<Record<string, string>>): Field[] {
  return Object.entries(texts).map(([key, value]) => [field, message([1, key], [2, value])])
}
