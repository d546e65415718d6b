import { Turn } from '../../../../foundation/lib/turn.ts'
import { isTooMuch, tooManyTokens, withoutStacks } from '../../../../foundation/lib/yaml-size.ts'

/** Size of a part that is parsed within about two milliseconds. */
const partChars = 8 * 1024
/** Maximum size of a document that cannot be divided: it takes half a second, in which nothing else runs. */
const maxPartChars = 512 * 1024
/**
 * References between parts of a document: anchors, aliases and tags, which begin a node, directives, several documents.
 * The `&` of a URL does not match.
 */
const coupled = /^(?:---|\.\.\.|%)|(?:^|[\s,[{:])[&*!]/m

/**
 * Elements of a YAML 1.2 list, with all scalars as text, so that `8080` is accepted as in Prometheus. A large list
 * whose elements begin at the margin is parsed in parts, with pauses between them for other work. Throws an `Error`
 * with a reason if it is not a list. The parser is loaded on demand.
 */
export async function* yamlElements(text: string): AsyncIterableIterator<unknown> {
  const { Lexer, parse } = await import('yaml')
  const listOf = (part: string, firstLine: number): readonly unknown[] => {
    if (part.length > maxPartChars)
      throw new Error(
        `the part from line ${firstLine + 1} is too large; use JSON, or smaller groups that each start with an unindented "- ", without anchors, aliases and tags`,
      )
    if (isTooMuch(new Lexer().lex(part)))
      throw new Error(`${tooManyTokens} in the part from line ${firstLine + 1}; make it smaller`)
    let value: unknown
    try {
      value = withoutStacks(() =>
        parse(part, { schema: 'failsafe', merge: true, stringKeys: true, logLevel: 'error' }),
      )
    } catch (error) {
      throw new Error(`not YAML: ${faultText(error, firstLine)}`, { cause: error })
    }
    if (value === null || value === '') return []
    if (!Array.isArray(value)) throw new Error('not a list')
    return value
  }
  const turn = new Turn(1)
  let line = 0
  for (const part of partsOf(text)) {
    yield* listOf(part, line)
    line += part.split('\n').length - 1
    const rest = turn.rest()
    if (rest) await rest
  }
}

/**
 * Splits a list at the margin into lists of whole elements: no line within an element begins with `- ` (YAML 1.2.2,
 * section 8.2.1; deeper collections and the lines of scalars are indented).
 */
function* partsOf(text: string): IterableIterator<string> {
  const isList = /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*- /.test(text)
  if (text.length <= partChars || !isList || coupled.test(text)) {
    yield text
    return
  }
  let start = 0
  for (let end = 0; start < text.length; start = end) {
    const next = text.indexOf('\n- ', start + partChars)
    end = next < 0 ? text.length : next + 1
    yield text.slice(start, end)
  }
}

/** First line of the parser's error, with cause and position; below it is an excerpt of the text. */
function faultText(error: unknown, firstLine: number): string {
  const { message, linePos } = error as Error & { linePos?: readonly [{ line: number; col: number }] }
  const what = message.split('\n', 1)[0]!.replace(/ at line \d+, column \d+:?$/, '')
  const place = linePos?.[0]
  return place === undefined ? what : `${what} at line ${firstLine + place.line}, column ${place.col}`
}
