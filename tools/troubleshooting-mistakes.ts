// Every kind of mistake in a configuration, for the page about troubles: from the messages that a test holds.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { code, table } from './markdown.ts'

/** The section, in Markdown. */
export function mistakes(): string {
  const golden = readFileSync(join(import.meta.dirname, '../test/golden/bad-config.txt'), 'utf8')
  const rows = golden.split(/^# /m).flatMap(part => {
    const [kind = '', first = ''] = part.split('\n')
    const said = first.replace(/^[\w.]+:(\d+:\d+:)? /, '')
    return said === '' ? [] : [[kind, code(said.replaceAll('`', '’'))]]
  })
  return `## What svc validate says

Each with its file, line and column, the line itself, and what was probably meant. All at once; nothing is started.

${table(['mistake', 'for example'], rows)}`
}
