import { nearest } from '../../foundation/lib/nearest.ts'
import { type ExitCode, exitCodes } from '../../foundation/lib/start-error.ts'
import { wrapped } from '../../foundation/lib/terminal-text.ts'

export interface Flag {
  readonly name: string
  /** One-letter alias: `d` for `-d`. */
  readonly short?: string
  /** Name of its value in the help text; without one, the flag is a switch. */
  readonly value?: string
  readonly summary: string
  /** All accepted values, if there are few. */
  readonly choices?: readonly string[]
}

/** The words after a command's name. */
export interface Arguments {
  /** Value of a flag that has one. */
  value(name: string): string | undefined
  has(name: string): boolean
  /** Positional words. */
  readonly words: readonly string[]
}

/** The positional word of a command. */
export interface Word {
  readonly name: string
  readonly summary: string
  /** All accepted values, if there are few. */
  readonly choices?: readonly string[]
  /** It has no default. */
  readonly required?: true
}

export interface Command {
  readonly name: string
  readonly summary: string
  readonly flags: readonly Flag[]
  /** Parses everything after its name itself, as `words`: the flags are another program's. */
  readonly foreignFlags?: true
  /** The only positional word, its name in capitals. */
  readonly word?: Word
  /** Exit codes with a specific meaning in this command, without a full stop. */
  readonly exits?: Readonly<Partial<Record<ExitCode, string>>>
  run(args: Arguments): Promise<ExitCode>
}

export const configFlag: Flag = {
  name: 'config',
  value: 'FILE',
  summary: 'configuration file; default: $SVC_CONFIG_FILE, ./config.yaml, /etc/svc/config.yaml',
}
export const modeFlag: Flag = {
  name: 'mode',
  value: 'MODE',
  summary: 'agent or collector',
  choices: ['agent', 'collector'],
}
export const levelFlag: Flag = {
  name: 'log-level',
  value: 'LEVEL',
  summary: 'debug, info, warn or error',
  choices: ['debug', 'info', 'warn', 'error'],
}
export const urlFlag: Flag = {
  name: 'url',
  value: 'URL',
  summary: 'the URL of the agent, with the token in SVC_TOKEN; default: its admin socket, else its address',
}
export const outputFlag: Flag = {
  name: 'output',
  short: 'o',
  value: 'FILE',
  summary:
    'write to FILE instead; the name sets the format of a profile: FILE.pb.gz (pprof), .folded, .svg, .json',
}
export const diffFlag: Flag = { name: 'diff', summary: 'print only differences' }
export const jsonFlag: Flag = { name: 'json', summary: 'print JSON' }

/** Flags of every command line; help is the last. */
export const everywhere: readonly Flag[] = [
  {
    name: 'validate-config',
    value: 'FILE',
    summary: 'check a configuration and print its problems',
  },
  { name: 'version', summary: 'print the version' },
  { name: 'help', short: 'h', summary: 'print this help' },
]

export interface CommandLine {
  readonly command: Command
  /** No command was given: the first of the list is used. */
  readonly implied: boolean
  readonly args: Arguments
}

/** Parses the words after the program's name. A string is an error message. */
export function parseArguments(given: readonly string[], commands: readonly Command[]): CommandLine | string {
  const argv = given[0] === 'help' ? [...given.slice(1), '--help'] : given
  const named = commandWord(argv, commands)
  let command = commands[0]!
  if (named !== undefined) {
    const word = argv[named]!
    const known = commands.find(({ name }) => name === word)
    if (!known) return unknownCommand(word, commands)
    command = known
  }
  const values = new Map<string, string>()
  if (command.foreignFlags) {
    const words = argv.filter((_, i) => i !== named)
    return { command, implied: false, args: { value: () => undefined, has: () => false, words } }
  }
  const flags = [...command.flags, ...everywhere]
  const words: string[] = []
  for (let i = 0; i < argv.length; i++) {
    const text = argv[i]!
    if (i === named) continue
    if (!text.startsWith('-') || text === '-') {
      words.push(text)
      continue
    }
    const equals = text.indexOf('=')
    const written = equals < 0 ? text : text.slice(0, equals)
    const flag = flags.find(each => isWritten(each, written))
    if (!flag) return unknownFlag(written, command, flags)
    const { name } = flag
    if (values.has(name)) return `--${name} is given twice`
    if (flag.value === undefined) {
      if (equals >= 0) return `--${name} does not take a value`
      values.set(name, '')
      continue
    }
    const value = equals < 0 ? argv[++i] : text.slice(equals + 1)
    if (value === undefined || value === '' || (equals < 0 && value.startsWith('--')))
      return `--${name} needs a value: --${name} ${flag.value}`
    values.set(name, value)
  }
  if (words.length > (command.word ? 1 : 0)) return `unexpected word "${words.at(-1)}"`
  const args = { value: (name: string) => values.get(name), has: (name: string) => values.has(name), words }
  return { command, implied: named === undefined, args }
}

/** Index of the command's name: the first word that is neither a flag nor a flag's value. */
function commandWord(argv: readonly string[], commands: readonly Command[]): number | undefined {
  const all = [...everywhere, ...commands.flatMap(({ flags }) => flags)]
  for (let i = 0; i < argv.length; i++) {
    const text = argv[i]!
    if (!text.startsWith('-')) return i
    const [written = ''] = text.split('=', 1)
    const flag = all.find(each => isWritten(each, written))
    // The next word may be the value of this unknown flag: report the flag.
    if (!flag) return undefined
    if (flag.value !== undefined && !text.includes('=') && !argv[i + 1]?.startsWith('--')) i++
  }
  return undefined
}

function isWritten({ name, short }: Flag, written: string): boolean {
  return written === `--${name}` || (short !== undefined && written === `-${short}`)
}

function unknownCommand(word: string, commands: readonly Command[]): string {
  return `unknown command "${word}"${meant(
    nearest(
      word,
      commands.map(({ name }) => name),
    ),
  )}`
}

function unknownFlag(given: string, command: Command, flags: readonly Flag[]): string {
  const near = nearest(
    given.replace(/^-+/, ''),
    flags.map(({ name }) => name),
  )
  return `unknown flag ${given} of "svc ${command.name}"${meant(near && `--${near}`)}`
}

function meant(near: string | undefined): string {
  return near ? `; did you mean ${near}?` : ''
}

/** The help of the program, or of one command. */
export function helpText(commands: readonly Command[], command?: Command): string {
  if (!command) {
    return [
      'Usage: svc [command] [flags]',
      '',
      'One agent per host: traces, metrics, logs and profiles by eBPF, sent over OTLP.',
      '',
      'Commands:',
      ...commands.flatMap(({ name, summary }, i) =>
        entry(name.padEnd(13), `${summary}${i === 0 ? ' (the default)' : ''}`),
      ),
      '',
      'Flags:',
      ...flagLines([...commands[0]!.flags, ...everywhere]),
      '',
      'Environment:',
      ...entry('SVC_<KEY>'.padEnd(22), 'sets a key: SVC_LOG_LEVEL=debug sets log_level'),
      ...entry('OTEL_EXPORTER_OTLP_*'.padEnd(22), 'apply to keys that the file does not set'),
      '',
      ...wrapped(`Exit codes: ${exitCodeList(exitCodes)}.`, 80),
      'Help of one command: svc COMMAND --help',
      '',
    ].join('\n')
  }
  const { word, exits } = command
  return [
    `Usage: svc ${command.name} [flags]${usageOf(word)}`,
    '',
    ...wrapped(`${command.summary[0]!.toUpperCase()}${command.summary.slice(1)}.`, 80),
    '',
    ...(word ? [...entry(word.name.padEnd(22), word.summary), ''] : []),
    'Flags:',
    ...flagLines([...command.flags, everywhere.at(-1)!]),
    '',
    ...(exits
      ? [...wrapped(`Exit codes: ${exitCodeList(exits)}; other codes as in svc --help.`, 80), '']
      : []),
  ].join('\n')
}

/** As `1 general; 2 configuration or usage`. */
export function exitCodeList(codes: NonNullable<Command['exits']>): string {
  return Object.entries(codes)
    .map(([code, means]) => `${code} ${means}`)
    .join('; ')
}

/** The usage of a command's word, after its flags. */
export function usageOf(word: Word | undefined): string {
  if (word === undefined) return ''
  return word.required ? ` ${word.name}` : ` [${word.name}]`
}

function flagLines(flags: readonly Flag[]): string[] {
  return flags.flatMap(({ name, short, value, summary }) =>
    entry(`--${name}${short ? `, -${short}` : ''}${value ? ` ${value}` : ''}`.padEnd(22), summary),
  )
}

/** A term and its meaning, side by side if 80 columns suffice. */
function entry(term: string, meaning: string): string[] {
  const [first = '', ...rest] = wrapped(meaning, 77 - term.length)
  return [`  ${term} ${first}`, ...rest.map(line => ' '.repeat(term.length + 3) + line)]
}
