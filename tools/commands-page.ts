// The reference page of the commands, from the table that parses the command line.

import { exitCodes } from '../src/foundation/lib/start-error.ts'
import { type Command, everywhere, exitCodeList, type Flag, usageOf } from '../src/program/cli/arguments.ts'
import { commands } from '../src/program/cli/index.ts'
import { capital, cell, code, table } from './markdown.ts'

/** The page, in Markdown. */
export function commandsPage(): string {
  return `${[intro(), index(), ...commands.map(section)].join('\n\n')}\n`
}

function intro(): string {
  const codes = Object.entries(exitCodes).map(([code, means]) => [code, means])
  return `# Commands

Generated from the commands in \`src/program/cli\` by \`tools/gen-docs.ts\`; do not edit.

\`svc\` without a command runs the agent. Results go to standard output, everything else to standard error. The output is
plain text if it is not a terminal or if \`NO_COLOR\` is set. Commands that query a running agent use its admin socket
(as root, without a token), else its address; \`--url\` selects another one, with the token in \`SVC_TOKEN\`.

All commands:

${flagTable(everywhere)}

Exit codes:

${table(['code', 'meaning'], codes)}

If a code has a more specific meaning for a command, see below and \`svc COMMAND --help\`. Fixes for each code:
[start failures](../troubleshooting.md#start-failures).`
}

function index(): string {
  return table(
    ['command', 'does'],
    commands.map(({ name, summary }) => [`[\`svc ${name}\`](#svc-${name})`, cell(summary)]),
  )
}

function section({ name, summary, flags, word, foreignFlags, exits }: Command): string {
  const parts = [`## svc ${name}`, `${capital(summary)}.`, `    svc ${name} [flags]${usageOf(word)}`]
  if (word !== undefined) {
    const choices = fewOf(word)
    parts.push(`\`${word.name}\`: ${word.summary.replace(/\.$/, '')}${choices}.`)
  }
  if (foreignFlags)
    parts.push(
      'Its flags are the same as those of the node exporter: see [replacing it](../node-exporter.md).',
    )
  if (flags.length > 0) parts.push(flagTable(flags))
  if (exits !== undefined) parts.push(`Exit codes: ${cell(exitCodeList(exits))}.`)
  return parts.join('\n\n')
}

/** All choices, if the summary does not list them. */
function fewOf({ summary, choices }: { summary: string; choices?: readonly string[] | undefined }): string {
  if (choices === undefined || choices.every(choice => summary.includes(choice))) return ''
  return `: ${choices.map(code).join(', ')}`
}

function flagTable(flags: readonly Flag[]): string {
  return table(
    ['flag', 'meaning'],
    flags.map(({ name, short, value, summary, choices }) => {
      const written = `--${name}${value === undefined ? '' : ` ${value}`}`
      const brief = short === undefined ? '' : `, ${code(`-${short}`)}`
      return [`${code(written)}${brief}`, `${cell(summary)}${fewOf({ summary, choices })}`]
    }),
  )
}
