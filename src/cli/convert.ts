import { nearest } from '../lib/nearest.ts'
import { ExitCode, StartError } from '../lib/start-error.ts'
import { type Command, exitCodeList } from './arguments.ts'
import { print, wrapped } from './terminal.ts'

const sources = ['node-exporter', 'prometheus', 'obi'] as const

const exits = {
  [ExitCode.ok]: 'all was converted',
  [ExitCode.general]: 'something was left out',
  [ExitCode.usage]: 'the input cannot be read',
} as const

const help = `Usage: svc convert node-exporter [FILE] [FLAGS...]
       svc convert prometheus FILE
       svc convert obi [FILE]

Prints a configuration of svc that does what another program was set to do, and
says on standard error what it could not take over, with the reason.

  node-exporter  its flags, or a FILE that has them: a systemd unit, or
                 /etc/default/prometheus-node-exporter
  prometheus     prometheus.yml, or the scrape file of vmagent
  obi            the configuration of OBI or Beyla, a file of their variables, a
                 compose file or manifest with them; by default the environment

FILE is - for standard input. Nothing is changed and nothing is started.

${wrapped(`Exit codes: ${exitCodeList(exits)}.`, 80).join('\n')}

    svc convert prometheus /etc/prometheus/prometheus.yml > svc.yaml
    svc validate svc.yaml
`

export const convert: Command = {
  name: 'convert',
  summary: 'print a configuration that replaces that of node_exporter, Prometheus or OBI',
  flags: [],
  // Those of the exporter.
  foreignFlags: true,
  exits,
  word: {
    name: 'PROGRAM',
    summary:
      'what is replaced: node-exporter [FILE] [FLAGS...], prometheus FILE (vmagent, too) or obi [FILE] (Beyla, too)',
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
      const wrong = word === undefined ? 'convert from what?' : `cannot convert from "${word}";`
      throw new StartError(
        `${wrong} ${near ? `did you mean ${near}? ` : ''}the programs are ${sources.join(', ')}`,
        ExitCode.usage,
      )
    }
    // Loaded here, for an agent that runs needs none of it.
    return (await import('./convert/convert-from.ts')).convertFrom(source, rest)
  },
}
