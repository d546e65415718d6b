import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { groups, type Topic } from '../../kernel/need.ts'
import { type Command, configFlag, jsonFlag, modeFlag } from './arguments.ts'
import { outputColor, outputColumns, print } from './terminal.ts'

export const doctor: Command = {
  name: 'doctor',
  summary: 'check what the agent needs from this host, and print what is missing and how to fix it',
  flags: [configFlag, modeFlag, jsonFlag],
  word: {
    name: 'TOPIC',
    summary: `only one of ${Object.keys(groups).join(', ')}`,
    choices: Object.keys(groups),
  },
  exits: {
    [ExitCode.general]: 'something is missing or limited',
    [ExitCode.exporting]: 'a receiver does not accept data, and nothing else is missing or limited',
  },
  async run(args) {
    // Loaded on demand: the agent does not need it.
    const { examine, exitCodeFor, topics } = await import('../doctor/examine.ts')
    const { report } = await import('../doctor/report.ts')
    const { configurationOf } = await import('./configuration.ts')
    const { withProgress } = await import('./progress.ts')
    const { terminalJson } = await import('../../foundation/lib/terminal-text.ts')
    // The system's resolver cannot be interrupted: shorten its wait of ten seconds for a name server.
    process.env.RES_OPTIONS ??= 'timeout:1 attempts:2'
    const topic = topicOf(args.words[0], topics)
    const diagnosis = await withProgress(
      'running host checks',
      examine(configurationOf(args), { topic, isOfFile: args.has('config') || args.has('mode') }),
    )
    print(
      args.has('json')
        ? `${terminalJson(JSON.stringify(diagnosis, null, 2))}\n`
        : report(diagnosis, outputColor(), outputColumns()),
    )
    return exitCodeFor(diagnosis)
  },
}

function topicOf(word: string | undefined, topics: readonly Topic[]): Topic | undefined {
  if (word === undefined) return undefined
  const topic = topics.find(each => each === word.toLowerCase())
  if (topic !== undefined) return topic
  const near = nearest(word, topics)
  throw new StartError(
    `unknown topic "${word}"; ${near ? `did you mean ${near}? The` : 'the'} topics are ${topics.join(', ')}`,
    ExitCode.usage,
  )
}
