// The fenced blocks of the pages, and what stands in them.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

export interface DocBlock {
  /** `docs/ui.md:78`, for messages. */
  readonly place: string
  readonly page: string
  /** First word behind the fence. */
  readonly language: string
  /** Why it is not run, of a block marked `not-run: WHY`; '' for all others. Markdown shows nothing of it. */
  readonly notRun: string
  /** Whose it is, of YAML marked `not-config: WHOSE` that is no configuration of svc; '' for all others. */
  readonly notConfig: string
  readonly text: string
  /** The block of kind `text` that follows: the output to expect. */
  readonly output: string
}

/** Pages for users, in the order in which they are read. */
export function userPages(): readonly string[] {
  const docs = readdirSync(join(root, 'docs')).filter(file => file.endsWith('.md'))
  return ['README.md', ...docs.sort().map(file => `docs/${file}`), 'docs/reference/api.md']
}

export function blocksOf(page: string): readonly DocBlock[] {
  return blocksIn(page, readFileSync(join(root, page), 'utf8'))
}

/** Fences at the beginning of a line; those inside of lists are for reading. */
export function blocksIn(page: string, text: string): readonly DocBlock[] {
  const blocks: { -readonly [K in keyof DocBlock]: DocBlock[K] }[] = []
  let end = 0
  for (const match of text.matchAll(/^```(\w*)[ \t]*(.*)\n([\s\S]*?)^```$/gm)) {
    const [whole, language = '', info = '', content = ''] = match
    const before = blocks.at(-1)
    const follows = text.slice(end, match.index).trim() === '' && before?.language === 'sh'
    end = match.index + whole.length
    if (language === 'text' && follows) before.output = content
    blocks.push({
      page,
      place: `${page}:${text.slice(0, match.index).split('\n').length}`,
      language,
      notRun: /^not-run: (.+)$/.exec(info)?.[1] ?? '',
      notConfig: /^not-config: (.+)$/.exec(info)?.[1] ?? '',
      text: content,
      output: '',
    })
  }
  return blocks
}

/** Lines of a shell block that do something, continued lines joined and comments taken off. */
export function shellLines(text: string): readonly string[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map(line => line.replace(/(^|\s)#\s.*$/, '').trim())
    .filter(line => line !== '')
}

/** The command lines of `svc` in a line of the shell, word by word; what it is piped into is left out. */
export function svcWords(line: string): readonly (readonly string[])[] {
  return line
    .split(/\s*(?:&&|\|\||[|;<>]|\$\()\s*/)
    .map(command => command.replace(/\)$/, '').split(/\s+/).map(unquoted))
    .flatMap(words => {
      const at = words.findIndex((word, at) => /^(bin\/|\/usr\/bin\/)?svc$/.test(word) && isCall(words, at))
      return at < 0 ? [] : [words.slice(at + 1)]
    })
}

/** Whether that word is a command and not somebody's argument, such as the name of a service or a container. */
function isCall(words: readonly string[], at: number): boolean {
  const before = words.slice(0, at)
  return before.every(word => /^\w+=/.test(word) || word === 'sudo') || before.at(-1) === '--'
}

function unquoted(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, '$2')
}
