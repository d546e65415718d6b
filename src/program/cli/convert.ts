import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { wrapped } from '../../foundation/lib/terminal-text.ts'
import { type Command, exitCodeList } from './arguments.ts'
import { print } from './terminal.ts'

const sources = ['node-exporter', 'prometheus', 'obi'] as const

const exits = {
  [ExitCode.ok]: 'everything was converted',
  [ExitCode.general]: 'some settings were left out',
  [ExitCode.usage]: 'the input cannot be read',
} as const

const help = `Usage: svc convert node-exporter [FILE] [FLAGS...]
       svc convert prometheus FILE
       svc convert obi [FILE]

Prints an svc configuration equivalent to that of another program, and prints to
standard error the settings that it could not convert, with the reason.

  node-exporter  its flags, or a FILE that contains them: a systemd unit, or
                 /etc/default/prometheus-node-exporter
  prometheus     prometheus.yml, or the scrape file of vmagent
  obi            the configuration of OBI or Beyla, a file of their variables, or a
                 compose file or manifest with them; default: the environment

FILE can be - for standard input. The command changes and starts nothing.

${wrapped(`Exit codes: ${exitCodeList(exits)}.`, 80).join('\n')}

    svc convert prometheus /etc/prometheus/prometheus.yml > svc.yaml
    svc validate svc.yaml
`

export const convert: Command = {
  name: 'convert',
  summary: 'print an svc configuration converted from node_exporter, Prometheus or OBI',
  flags: [],
  // The flags of the exporter.
  foreignFlags: true,
  exits,
  word: {
    name: 'PROGRAM',
    summary:
      'the source: node-exporter [FILE] [FLAGS...], prometheus FILE (also vmagent) or obi [FILE] (also Beyla)',
    choices: sources,
    required: true,
  },
  async run({ words: [word, ...rest] }) {
    if ([word, ...rest].some(each => each === '--help' || each === '-h')) {
      print(help)
      return ExitCode.ok
    }
    const source = sources.find(each => each === word)
    if (source === undefined) {
      const near = word === undefined ? undefined : nearest(word, sources)
      const wrong = word === undefined ? 'no program to convert from;' : `cannot convert from "${word}";`
      throw new StartError(
        `${wrong} ${near ? `did you mean ${near}? ` : ''}the programs are ${sources.join(', ')}`,
        ExitCode.usage,
      )
    }
    // Loaded on demand: the agent does not need it.
    return (await import('./convert/convert-from.ts')).convertFrom(source, rest)
  },
}
