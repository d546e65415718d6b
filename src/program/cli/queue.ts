import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { signals } from '../../foundation/model/signal.ts'
import { type Arguments, type Command, configFlag, jsonFlag } from './arguments.ts'

const actions = ['ls', 'verify', 'export', 'drop'] as const
type Action = (typeof actions)[number]

/** Flags that only some actions have. */
const flagsOf: Readonly<Record<string, readonly Action[]>> = {
  json: ['ls', 'verify'],
  to: ['export'],
  dead: ['export', 'drop'],
  before: ['drop'],
  yes: ['drop'],
}

export const queue: Command = {
  name: 'queue',
  summary: 'inspect the queue on disk, copy it to a file, or drop its data',
  flags: [
    configFlag,
    {
      name: 'directory',
      value: 'DIR',
      summary: 'directory of the queue; default: pipeline.export.queue.directory of the configuration',
    },
    { name: 'signal', value: 'SIGNAL', summary: 'only traces, metrics, logs or profiles', choices: signals },
    { name: 'dead', summary: 'export, drop: permanently rejected data instead of queued data' },
    { name: 'to', value: 'FILE', summary: 'export: the new file; - for standard output' },
    { name: 'before', value: 'TIME', summary: 'drop: only older data; 2h ago, or 2026-01-31T12:00:00Z' },
    { name: 'yes', summary: 'drop: no confirmation' },
    jsonFlag,
  ],
  word: {
    name: 'ACTION',
    choices: actions,
    summary:
      'ls (the default) lists queued data; verify reads all of it and lists damage; export copies it as OTLP JSON, one request per line; drop deletes it permanently, while no agent is running. Only drop changes data; the others work next to a running agent.',
  },
  exits: {
    [ExitCode.general]: 'verify found damage, or drop was not allowed or not confirmed',
    [ExitCode.exporting]: 'export could not copy all data',
  },
  async run(args) {
    const action = actionOf(args.words[0])
    checkFlags(args, action)
    // Loaded on demand: the agent does not need it.
    const { placeOf } = await import('./queue/place.ts')
    const place = placeOf(args)
    switch (action) {
      case 'ls':
        return (await import('./queue/list.ts')).list(place, args.has('json'))
      case 'verify':
        return (await import('./queue/verify.ts')).verify(place, args.has('json'))
      case 'export':
        return (await import('./queue/export.ts')).exportQueue(place, args.value('to'), args.has('dead'))
      case 'drop':
        return (await import('./queue/drop.ts')).drop(place, {
          dead: args.has('dead'),
          before: args.value('before'),
          sure: args.has('yes'),
        })
    }
  },
}

function actionOf(word: string | undefined): Action {
  if (word === undefined) return 'ls'
  const action = actions.find(each => each === word)
  if (action) return action
  const near = nearest(word, actions)
  throw new StartError(
    `unknown action "${word}"; ${near ? `did you mean ${near}? The` : 'the'} actions are ${actions.join(', ')}`,
    ExitCode.usage,
  )
}

/** Rejects a flag that the action would ignore: `ls --before` would otherwise seem to filter. */
function checkFlags(args: Arguments, action: Action): void {
  for (const [flag, users] of Object.entries(flagsOf))
    if (args.has(flag) && !users.includes(action))
      throw new StartError(`--${flag} is not a flag of "svc queue ${action}"`, ExitCode.usage)
}
