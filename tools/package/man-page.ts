// svc(1), from the table of commands, in man(7) format.

import { exitCodes } from '../../src/foundation/lib/start-error.ts'
import {
  type Command,
  everywhere,
  exitCodeList,
  type Flag,
  helpText,
  usageOf,
} from '../../src/program/cli/arguments.ts'
import { commands } from '../../src/program/cli/index.ts'
import { timeText } from './release.ts'

const files: readonly (readonly [path: string, what: string])[] = [
  ['/etc/svc/config.yaml', 'The configuration. By default everything in it is a comment.'],
  ['/var/lib/svc', 'Data waiting for the receiver, and log positions.'],
  ['/run/svc/svc.sock', 'The admin socket for commands on this host.'],
  ['/usr/lib/svc', 'The program with its own runtime.'],
  ['/usr/share/doc/svc/sbom.cdx.json', 'Third-party parts of the package: CycloneDX 1.6.'],
]

/** The page of a version. */
export function manPage(version: string, epoch: number): string {
  const day = timeText(epoch).slice(0, 10)
  return `${[
    `.TH SVC 1 ${day} "svc ${version}" "User Commands"`,
    '.nh\n.ad l',
    '.SH NAME',
    'svc \\- observe a Linux host through eBPF and send the data over OTLP',
    '.SH SYNOPSIS',
    '.B svc',
    '.RI [ command ]\n.RI [ flags ]',
    '.SH DESCRIPTION',
    text(
      'One agent per host: traces, metrics, logs and profiles by eBPF, with no change to any application.',
    ),
    text(
      'While it runs, "svc ui" prints a link to the live page, for root. Without a command, svc runs the first one.',
    ),
    '.SH COMMANDS',
    ...commands.map(section),
    '.SH FLAGS OF EVERY COMMAND',
    ...everywhere.map(flagText),
    '.SH EXIT STATUS',
    ...Object.entries(exitCodes).map(([code, means]) => term(code, `${means}.`)),
    '.SH ENVIRONMENT',
    ...[...helpPart(/Environment:\n([\s\S]*?)\n\n/).matchAll(/^ {2}(\S+) +(.+)$/gm)].map(([, name, what]) =>
      term(name!, `${what!}.`),
    ),
    '.SH FILES',
    ...files.map(([path, what]) => term(path, what)),
    '.SH EXAMPLES',
    term('svc doctor', 'Checks of this host, with fixes.'),
    term('svc explain 8080', 'Why the program that listens on that port is traced, or is not.'),
    term('svc validate', 'All mistakes in the configuration.'),
    '.SH SEE ALSO',
    '.BR systemctl (1),\n.BR journalctl (1)',
  ].join('\n')}\n`
}

function section({ name, summary, flags, foreignFlags, word, exits }: Command): string {
  const shown = foreignFlags
    ? [text('Its flags are those of the node exporter: svc node-exporter --help.')]
    : flags.map(flagText)
  return [
    `.SS "svc ${escaped(name + usageOf(word))}"`,
    text(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`),
    ...(word === undefined ? [] : [term(word.name, `${word.summary}.`)]),
    ...shown,
    ...(exits === undefined ? [] : [term('Exit codes', `${exitCodeList(exits)}.`)]),
  ].join('\n')
}

function flagText({ name, short, value, summary }: Flag): string {
  const spellings = `--${name}${short === undefined ? '' : `, -${short}`}${value === undefined ? '' : ` ${value}`}`
  return term(spellings, `${summary}.`)
}

function term(name: string, what: string): string {
  return `.TP\n.B "${escaped(name).replaceAll('"', '\\(dq')}"\n${text(what)}`
}

/** One paragraph. Escapes lines that would start a request. */
function text(words: string): string {
  return `${escaped(words)
    .replace(/\s+/g, ' ')
    .replace(/^(?=[.'])/, '\\&')}`
}

function escaped(words: string): string {
  return words.replaceAll('\\', '\\e').replaceAll('-', '\\-')
}

/** Part of the program's help, its only definition. */
function helpPart(pattern: RegExp): string {
  const [, part] = pattern.exec(helpText(commands)) ?? []
  if (part === undefined) throw new Error(`the help text has nothing like ${pattern}`)
  return part
}
