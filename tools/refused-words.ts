// Finds refused words in texts for users, by the list in docs/develop/words.md.
import { type Literal, literalsOf } from './literals.ts'

/** The page with the list, itself checked up to the list. */
export const wordsPage = 'docs/develop/words.md'

/** Files with texts for users. Each must be in one of the two lists below. */
const read = /\.md$|^deploy\/|^(?:src|ui|tools\/(?:deploy|package))\/.*(?<!\.test)\.tsx?$/

/** Areas without refused words, except those of the next list. */
const finished: readonly RegExp[] = [
  /^[^/]+\.md$/,
  /^docs\//,
  /^deploy\//,
  /^(?:src|ui)\//,
  /^tools\/(?:deploy|package)\//,
]

/** Areas with the help texts of node exporter, which are a contract. */
const contract: readonly RegExp[] = [/^src\/signals\/metrics\/collectors\//, /^docs\/reference\/metrics\.md$/]

/** A refused word in a text, or why the file is not checked; `index`: its position in the text. */
export interface Refused {
  readonly index: number
  readonly what: string
}

const rows = /^\| (?!refused \||-)([^|`]+) \|(.*)\|$/gm

/** The list of the page: word → replacement. Throws if there is none. */
export function refusedWords(page: string): ReadonlyMap<string, string> {
  const list = page.slice(startOf(page))
  const words = new Map<string, string>()
  for (const [, refused, instead] of list.matchAll(rows))
    for (const word of refused!.split(', ')) words.set(word, instead!.trim())
  if (words.size === 0) throw new Error(`${wordsPage} has no list of refused words`)
  return words
}

function startOf(page: string): number {
  const at = page.search(/^## Refused words$/m)
  return at < 0 ? page.length : at
}

/** The refused words in the texts of a file, by the list of the page. */
export function refusedIn(file: string, text: string, words: ReadonlyMap<string, string>): Refused[] {
  if (!read.test(file) || contract.some(area => area.test(file))) return []
  if (!finished.some(area => area.test(file)))
    return [{ index: 0, what: 'in no list of tools/refused-words.ts: add its area' }]
  // Longer ones first. Names in backticks and parts of names, such as `--again`, do not count.
  const choice = [...words.keys()].sort((a, b) => b.length - a.length).join('|')
  const pattern = new RegExp(`(?<![\\w\`-])(?:${choice})(?![\\w\`-])`, 'gi')
  return textsOf(file, text).flatMap(part =>
    [...part.text.matchAll(pattern)].map(({ 0: word, index }) => ({
      index: part.index + index,
      what: `"${word}": write ${words.get(word.toLowerCase())}`,
    })),
  )
}

/** The parts of a file that users read: in code, literals of several words. */
function textsOf(file: string, text: string): readonly Literal[] {
  if (/\.tsx?$/.test(file))
    return literalsOf(text, file.endsWith('x')).filter(each => /[a-z] [a-z]/i.test(each.text))
  return [{ index: 0, text: file === wordsPage ? text.slice(0, startOf(text)) : text }]
}
