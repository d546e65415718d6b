// Validates a JSON document that should be a figure, or the results of a run. Checks only what readers use.

/** Returns the error of the value at `path`; '' if it is valid. */
type Check = (value: unknown, path: string) => string

function kind(what: string, isValid: (value: unknown) => boolean): Check {
  return (value, path) => {
    if (isValid(value)) return ''
    return value === undefined ? `${path} is missing` : `${path || 'it'} is not ${what}`
  }
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
const object = kind('an object', isObject)
const text = kind('a string', value => typeof value === 'string')
const truth = kind('true or false', value => typeof value === 'boolean')
const number = kind('a number', Number.isFinite)
const oneOf = (...values: readonly unknown[]) =>
  kind(`one of ${values.join(', ')}`, value => values.includes(value))

/** Allows other members than those of `shape`. */
function objectOf(shape: Readonly<Record<string, Check>>): Check {
  return (value, path) => {
    const members = value as Readonly<Record<string, unknown>>
    let fault = object(value, path)
    for (const [key, check] of Object.entries(shape))
      fault ||= check(members[key], path === '' ? key : `${path}.${key}`)
    return fault
  }
}

function listOf(item: Check, least = 0): Check {
  const list = kind('a list', Array.isArray)
  return (value, path) => {
    let fault = list(value, path)
    if (fault !== '') return fault
    const items = value as readonly unknown[]
    if (items.length < least) return `${path} is empty`
    for (const [index, each] of items.entries()) fault ||= item(each, `${path}[${index}]`)
    return fault
  }
}

const figure = objectOf({
  name: text,
  unit: text,
  better: oneOf('less', 'more'),
  samples: listOf(number, 1),
  median: number,
})

const results = objectOf({
  scripts: listOf(
    objectOf({
      name: text,
      result: oneOf('passed', 'failed', 'skipped'),
      reason: text,
      load: listOf(number),
      figures: listOf(figure),
    }),
  ),
  commit: text,
  changed: truth,
  began: text,
  node: text,
  kernel: text,
  cpu: objectOf({ model: text, count: number }),
})

/** The error of a figure; '' if it is valid. */
export function figureFault(value: unknown): string {
  return figure(value, '')
}

/** The error of the results of a run; '' if they are valid. */
export function resultsFault(value: unknown): string {
  return results(value, '')
}
