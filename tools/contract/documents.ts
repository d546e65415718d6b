// Documents of the management API: each promised field has its shape, its type or words, and is always there; paths,
// statuses and error codes are as promised.
import { codes } from '../../src/view/api/answer.ts'
import type { Operation } from '../../src/view/api/operation.ts'
import { namedShapes, refer } from '../../src/view/api/schema.ts'
import { listedOperations } from './facts.ts'
import { type Field, service } from './spec.ts'

type Json = Readonly<Record<string, unknown>>

export function documentFaults(): string[] {
  const faults: string[] = []
  const operations = new Map(listedOperations().map(each => [`${each.method} ${each.path}`, each]))
  const shapes = shapesOf([...operations.values()])
  for (const [where, statuses] of Object.entries(service.paths)) {
    const operation = operations.get(where)
    if (operation === undefined) {
      faults.push(`${where}: promised, but not served`)
      continue
    }
    for (const [status, document] of Object.entries(statuses)) {
      const outcome = operation.outcomes[Number(status)]
      if (outcome === undefined) faults.push(`${where}: does not answer ${status}`)
      const content = outcome?.content['application/json']
      if (document === null || outcome === undefined) continue
      if (content === undefined) faults.push(`${where} ${status}: answers no JSON`)
      else compare(service.documents[document]!, refer(content), `${where} ${status}`, shapes, faults)
    }
  }
  const error = namedShape(shapes, 'Error')
  compare(service.documents.error!, error, 'the error object', shapes, faults)
  for (const [code, statuses] of Object.entries(service.errors))
    for (const status of statuses)
      if ((codes as Readonly<Record<number, string>>)[status] !== code)
        faults.push(`status ${status}: its code is promised as ${code}`)
  return faults
}

function shapesOf(operations: readonly Operation[]): ReadonlyMap<string, Json> {
  const all = operations.flatMap(({ outcomes }) =>
    Object.values(outcomes).flatMap(({ content }) =>
      Object.values(content).filter(each => each !== undefined),
    ),
  )
  return new Map(namedShapes(all))
}

function namedShape(shapes: ReadonlyMap<string, Json>, name: string): Json {
  const shape = shapes.get(name)
  if (shape === undefined) throw new Error(`the API has no shape ${name}`)
  return shape
}

/** Adds the differences between a field and a shape. */
export function compare(
  field: Field,
  given: Json,
  at: string,
  shapes: ReadonlyMap<string, Json>,
  faults: string[],
): void {
  const reference = given.$ref as string | undefined
  const shape = reference === undefined ? given : namedShape(shapes, reference.split('/').at(-1)!)
  if (Array.isArray(field)) {
    if (shape.type !== 'array') faults.push(`${at}: promised as a list`)
    else compare(field[0] as Field, shape.items as Json, `${at}[]`, shapes, faults)
    return
  }
  if (typeof field === 'string') {
    const types = typesOfField[field]
    const own = types === undefined && typesOf(shape) === 'string' ? wordsOf(shape) : typesOf(shape)
    if (!(types ?? [sorted(field.split('|'))]).includes(own))
      faults.push(`${at}: promised as ${field}, but is ${own}`)
    return
  }
  if (shape.type !== 'object') faults.push(`${at}: promised as an object`)
  const properties = (shape.properties ?? {}) as Readonly<Record<string, Json>>
  for (const [name, below] of Object.entries(field as Readonly<Record<string, Field>>)) {
    const own = properties[name]
    if (own === undefined) faults.push(`${at}.${name}: promised, but not in the shape`)
    else {
      if (!(shape.required as string[] | undefined)?.includes(name))
        faults.push(`${at}.${name}: promised, but may be absent`)
      compare(below, own, `${at}.${name}`, shapes, faults)
    }
  }
}

/** `string`, or several in order. */
function typesOf({ type, enum: words, const: word }: Json): string {
  if (type === undefined) return typeof (word ?? (words as unknown[] | undefined)?.[0])
  return [type].flat().sort().join(' ')
}

/** The words that a shape allows; "any text" where it names none. */
function wordsOf({ enum: words, const: word }: Json): string {
  return words === undefined ? String(word ?? 'any text') : sorted(words as readonly string[])
}

function sorted(words: readonly string[]): string {
  return words.toSorted().join('|')
}

/** What a shape may say of a field. Any other field is a choice of words. */
const typesOfField: Readonly<Record<string, readonly string[]>> = {
  boolean: ['boolean'],
  count: ['integer'],
  number: ['number', 'integer'],
  time: ['null string', 'string'],
  text: ['string'],
  'text?': ['null string', 'string'],
}
