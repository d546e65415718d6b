// Translates errors of the YAML parser into clear messages.

import { type ErrorCode, Lexer, type YAMLError } from 'yaml'

/** A fault with its range in the text, in UTF-16 units. */
export interface YamlFault {
  readonly message: string
  readonly start: number
  readonly end: number
}

/**
 * A message for each code: for errors that the parser does not distinguish further, or that were never observed.
 * Messages do not quote the text: it may be a password that needs quotes.
 */
const sentences: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have a tag or an anchor; delete the text before the "*"',
  BAD_ALIAS: 'an anchor or alias needs a name, as in "*name", and the name cannot end in ":"',
  BAD_COLLECTION_TYPE: 'this tag cannot be used for a list or a map',
  BAD_DIRECTIVE: 'not a YAML directive; a text that begins with "%" needs quotes',
  BAD_DQ_ESCAPE: 'unknown escape sequence; double the "\\", or use single quotes',
  BAD_INDENT: 'the indentation of this line does not match the lines around it',
  BAD_PROP_ORDER: 'a tag or anchor is before a "-", "?" or ":"; move it after that',
  BAD_SCALAR_START: 'a text that begins with this character needs quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a map begins within a value: a line is indented too much, or a text with ": " needs quotes',
  BLOCK_IN_FLOW: 'a comma is missing, or a list or map inside brackets needs its own brackets',
  DUPLICATE_KEY: 'duplicate key; remove one',
  IMPOSSIBLE: 'this line cannot be parsed; rewrite it',
  KEY_OVER_1024_CHARS: 'a key has more than 1,024 characters before its ":"',
  MISSING_CHAR: 'a character is missing here',
  MULTILINE_IMPLICIT_KEY: 'a key spans several lines; a ":" or a quote may be missing',
  MULTIPLE_ANCHORS: 'a value has two anchors; remove one',
  MULTIPLE_DOCS: 'a second document begins here; a file can contain only one configuration',
  MULTIPLE_TAGS: 'a value has two tags; remove one',
  NON_STRING_KEY: 'a key must be text; write it in quotes',
  RESOURCE_EXHAUSTION: 'values are nested too deeply',
  TAB_AS_INDENT: 'tabs cannot be used for indentation; use spaces',
  TAG_RESOLVE_FAILED: 'unknown tag; a text that begins with "!" needs quotes',
  UNEXPECTED_TOKEN: 'this text does not belong here; check indentation and quotes',
}

/** One code of the parser covers many mistakes; its messages distinguish them. The first match counts. */
const closer: readonly (readonly [code: ErrorCode, message: RegExp, sentence: string])[] = [
  ['BLOCK_AS_IMPLICIT_KEY', /sequence/, 'the indentation of this "-" does not match the rest of the list'],
  ['BAD_INDENT', /^All mapping items/, 'the indentation of this key does not match the keys around it'],
  ['BAD_INDENT', /^All sequence items/, 'the indentation of this "-" does not match the rest of the list'],
  ['BAD_INDENT', /^Block scalar/, 'a line of the text below "|" or ">" is indented less than its first'],
  ['BAD_INDENT', /^Flow end indicator/, 'the closing bracket must be indented more than the key'],
  [
    'BAD_INDENT',
    /end with a \}$/,
    'the "{" is not closed; a "}" is missing, or lines are indented too little',
  ],
  [
    'BAD_INDENT',
    /end with a \]$/,
    'the "[" is not closed; a "]" is missing, or lines are indented too little',
  ],
  ['MISSING_CHAR', /end with a \}$/, 'the "{" is not closed; a "}" is missing'],
  ['MISSING_CHAR', /end with a \]$/, 'the "[" is not closed; a "]" is missing'],
  ['MISSING_CHAR', /^Missing closing /, 'a quoted text is not closed; a quote is missing'],
  ['MISSING_CHAR', /^Missing , /, 'a comma is missing before this item'],
  ['MISSING_CHAR', /^Missing space after :/, 'a space is missing after the ":"'],
  ['MISSING_CHAR', /^Implicit map keys/, 'a ":" is missing after the key; write "key: value"'],
  ['MISSING_CHAR', /^Sequence item without/, 'a "-" is missing before this item of the list'],
  ['MISSING_CHAR', /^Comments must/, 'a space is missing before the "#"; a text with "#" needs quotes'],
  ['MISSING_CHAR', /^Tags and anchors/, 'a space is missing after the tag or anchor'],
  ['MISSING_CHAR', /^Missing newline/, 'a list or map must begin on the line after its tag or anchor'],
  ['MISSING_CHAR', /same line with directives-end/, 'keys must begin on the line after "---"'],
  ['MISSING_CHAR', /directives-end/, 'a line "---" is missing after the directives'],
  ['MISSING_CHAR', /^Block scalars/, 'the first lines of the text are indented more than the others'],
  ['UNEXPECTED_TOKEN', /^Unexpected , /, 'a comma without an item; delete it'],
  ['UNEXPECTED_TOKEN', /^Unexpected empty item/, 'an item is missing between two commas'],
  ['UNEXPECTED_TOKEN', /^Unexpected flow-(map|seq)-end/, 'a closing bracket without an opening one'],
  [
    'UNEXPECTED_TOKEN',
    /^Block scalar header/,
    'nothing may follow "|" or ">"; begin the text on the next line',
  ],
  [
    'UNEXPECTED_TOKEN',
    /at node end$/,
    'nothing may follow the value here; a text with quotes within needs quotes around it',
  ],
]

/** The fault and its place: for a missing end, the place of the opening. */
export function yamlFault({ code, message, pos: [at, end] }: YAMLError, text: string): YamlFault {
  const found = closer.find(([of, pattern]) => of === code && pattern.test(message))
  const opened = opening(message, text, at)
  const start = opened ?? at
  return {
    message: found?.[2] ?? sentences[code] ?? sentences.IMPOSSIBLE,
    start,
    end: opened === undefined ? Math.max(end, start + 1) : start + 1,
  }
}

/** Start of the quotation or bracket that is not closed at `at`. */
function opening(message: string, text: string, at: number): number | undefined {
  const bracket = /end with a ([\]}])$/.exec(message)?.[1]
  const isQuote = message.startsWith('Missing closing ')
  if (bracket === undefined && !isQuote) return undefined
  const open: number[] = []
  let offset = 0
  let isPlain = false
  for (const token of new Lexer().lex(text)) {
    if (isPlain) {
      isPlain = false
      offset += token.length
      continue
    }
    if (isQuote && /^["']/.test(token) && offset + token.length >= at) return offset
    if (!isQuote && offset >= at) break
    if (token === '[' || token === '{') open.push(offset)
    else if (token === ']' || token === '}' || token === flowEnd) open.pop()
    isPlain = token === scalar
    if (!marks.has(token)) offset += token.length
  }
  return open.pop()
}

// Control tokens that the lexer inserts: a bracket was left open, an unquoted text follows, a document begins.
const flowEnd = '\x18'
const scalar = '\x1f'
const marks: ReadonlySet<string> = new Set([flowEnd, scalar, '\x02'])
