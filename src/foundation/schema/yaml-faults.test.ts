import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { formatProblems, type Problem, reportInto } from './problem.ts'
import { fileSource } from './value.ts'
import { parseYaml } from './yaml-place.ts'

function problemsOf(text: string): Problem[] {
  const problems: Problem[] = []
  parseYaml(fileSource('svc.yaml', text), {}, reportInto(problems))
  return problems
}

test('each mistake of YAML has a sentence, at the place where it is fixed', () => {
  const check = (text: string, line: number, column: number, want: RegExp) => {
    const [first] = problemsOf(text)
    assert.ok(first, `nothing is said of ${JSON.stringify(text)}`)
    assert.match(first.message, want, text)
    assert.match(first.message, /^not valid YAML: /)
    assert.deepEqual([first.line, first.column], [line, column], `${text}\n${first.message}`)
    assert.match(formatProblems([first], { terminal: true }), /\| *\t*\^/, text)
  }
  check('a: "b\nc: d\n', 1, 4, /a quoted text is not closed/)
  check("a: 'b\n", 1, 4, /a quoted text is not closed/)
  check('a: |\n  "text"\nb: "c\n', 3, 4, /a quoted text is not closed/)
  check('a: {b: 1\nc: 2\n', 1, 4, /the "\{" is not closed/)
  check('a: [1, 2\nc: 2\n', 1, 4, /the "\[" is not closed/)
  check('a: [[1, 2], [3\n', 1, 13, /the "\[" is not closed/)
  check('a: [1] ]\n', 1, 8, /a closing bracket without an opening one/)
  check('a: {b: 1 c: 2}\n', 1, 8, /a comma is missing, or a list or map inside brackets/)
  check('a: [,1]\n', 1, 5, /a comma without an item/)
  check('a: b: c\n', 1, 4, /a map begins within a value: .* a text with ": " needs quotes/)
  check('a: 1\n  b: 2\n', 1, 4, /a map begins within a value: a line is indented too much/)
  check('a:\n   b: 1\n  c: 2\n', 3, 1, /the indentation of this key/)
  check('a:\n  - 1\n - 2\n', 3, 1, /the indentation of this "-"/)
  check('a: 1\nb\nc: 2\n', 2, 1, /a ":" is missing after the key/)
  check('a:b\nc: 1\n', 1, 1, /a key spans several lines; a ":"/)
  check('a: @b\n', 1, 4, /a text that begins with this character needs quotes/)
  check('a: %b\n', 1, 4, /needs quotes/)
  check('a: "\\q"\n', 1, 5, /unknown escape sequence/)
  check('\ta: 1\n', 1, 1, /tabs cannot be used for indentation/)
  check('a: "b" c\n', 1, 8, /nothing may follow the value/)
  check('a: "b"#c\n', 1, 7, /a space is missing before the "#"/)
  check('a: |x\n  b\n', 1, 5, /nothing may follow "\|"/)
  check('a: &x &y b\n', 1, 7, /two anchors/)
  check('a: !!str !!str b\n', 1, 10, /two tags/)
  check('a: 1\n---\nb: 2\n', 2, 1, /a second document begins here/)
  check('a: !env B\n', 1, 4, /unknown tag/)
})

/** Words of the parser's own messages that none of our sentences has. */
const foreign =
  /implicit|indicator|flow (map|seq)|Block (scalar|coll)|Unexpected|Plain value|Unresolved|props/i

const pieces = fc.constantFrom(
  ...['a', 'b: ', ': ', '\n', '\n  ', '\n - ', '\t', '"', "'", '[', ']', '{', '}', ', ', '#', ' #'],
  ...['&x ', '*x', '!t ', '|\n', '>\n', '%', '@', '---', '...', '\\', '? ', '\x18', '\x1f', '\x02', '\r\n'],
)

test('whatever is wrong, the sentence is ours, and its place is within the text', () => {
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 16 }).map(parts => parts.join('')),
      text => {
        const source = fileSource('svc.yaml', text)
        for (const { message, line, column, length } of problemsOf(text)) {
          assert.doesNotMatch(message, foreign, JSON.stringify(text))
          assert.ok(line >= 1 && line <= source.lineStarts.length && column >= 1 && length >= 1)
        }
      },
    ),
    { numRuns: soak ? 50_000 : 1000 },
  )
})
