// Input from other programs: files, environment files, and command lines.

import { isUtf8 } from 'node:buffer'
import { resolve } from 'node:path'
import { readContent } from '../../../foundation/lib/file-content.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { formatProblems, type Problem, reportInto } from '../../../foundation/schema/problem.ts'
import { fileSource, type Value } from '../../../foundation/schema/value.ts'
import { parseYaml } from '../../../foundation/schema/yaml-place.ts'

export interface Input {
  /** As shown in messages. */
  readonly name: string
  /** Absolute path; undefined for standard input. */
  readonly path: string | undefined
  readonly text: string
}

/** Reads a file of at most 1 MiB, `-` for standard input. Throws a `StartError` if it is not text. */
export function readInput(file: string): Input {
  const isStandard = file === '-'
  const { bytes, fault } = readContent(isStandard ? '/dev/stdin' : resolve(file), true)
  const name = isStandard ? 'standard input' : file
  const isText = bytes !== undefined && isUtf8(bytes) && !bytes.includes(0)
  if (bytes === undefined || !isText)
    throw new StartError(`cannot read ${name}: ${fault || 'not a text file'}`, ExitCode.usage)
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  return { name, path: isStandard ? undefined : resolve(file), text }
}

/** The YAML of a file, undefined if empty. References are not expanded. Throws a `StartError` with every fault. */
export function readYaml({ name, text }: Input): Value | undefined {
  const problems: Problem[] = []
  const value = parseYaml(fileSource(name, text), {}, reportInto(problems))
  if (problems.length > 0)
    throw new StartError(`cannot read ${name}:\n${formatProblems(problems).trimEnd()}`, ExitCode.usage)
  return value
}

/** Lines without comments; a trailing backslash joins the next line. */
export function logicalLines(text: string): string[] {
  const lines: string[] = []
  let open: string[] = []
  for (const line of text.split(/\r?\n/)) {
    if (open.length === 0 && /^\s*([#;]|$)/.test(line)) continue
    if (line.endsWith('\\')) {
      open.push(line.slice(0, -1))
      continue
    }
    lines.push([...open, line].join('').trim())
    open = []
  }
  return open.length > 0 ? [...lines, open.join('').trim()] : lines
}

const assignment = /^(?:export\s+)?([A-Za-z_]\w*)=(.*)$/s

/** Variables of a file of `NAME=value` lines (systemd.exec(5), docker(1)). Undefined if it has other lines. */
export function readVariables(text: string): Map<string, string> | undefined {
  const variables = new Map<string, string>()
  for (const line of logicalLines(text)) {
    const [, name, value] = assignment.exec(line) ?? []
    if (name === undefined) return undefined
    variables.set(name, unquoted(value!.trim()))
  }
  return variables
}

/** Without surrounding quotes, within which a backslash escapes quotes and backslashes. */
function unquoted(text: string): string {
  const quote = text[0]
  if ((quote !== '"' && quote !== "'") || text.length < 2 || !text.endsWith(quote)) return text
  const inner = text.slice(1, -1)
  return quote === '"' ? inner.replace(/\\(["\\$`])/g, '$1') : inner
}

/** Splits a command line at blanks, respecting quotes and backslashes. */
export function commandWords(line: string): string[] {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let i = 0; i < line.length; i++) {
    const sign = line[i]!
    if (sign === '\\' && quote !== "'" && i + 1 < line.length) word = (word ?? '') + line[++i]!
    else if (quote !== '' ? sign === quote : sign === '"' || sign === "'") {
      quote = quote === '' ? sign : ''
      word ??= ''
    } else if (quote === '' && /\s/.test(sign)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + sign
  }
  return word === undefined ? words : [...words, word]
}
