import { nearest } from '../lib/nearest.ts'
import { ExitCode, StartError } from '../lib/start-error.ts'
import { signals } from '../model/signal.ts'
import { type Arguments, type Command, configFlag, jsonFlag } from './arguments.ts'

const actions = ['ls', 'verify', 'export', 'drop'] as const
type Action = (typeof actions)[number]

/** Flags that not every action knows. */
const flagsOf: Readonly<Record<string, readonly Action[]>> = {
  json: ['ls', 'verify'],
  to: ['export'],
  dead: ['export', 'drop'],
  before: ['drop'],
  yes: ['drop'],
}

export const queue: Command = {
  name: 'queue',
  summary: 'look into the queue on disk, copy what is in it to a file, or drop it',
  flags: [
    configFlag,
    {
      name: 'directory',
      value: 'DIR',
      summary: 'the queue there; default: pipeline.export.queue.directory of the configuration',
    },
    { name: 'signal', value: 'SIGNAL', summary: 'only traces, metrics, logs or profiles', choices: signals },
    { name: 'dead', summary: 'export, drop: what the receiver refused for good, instead of what waits' },
    { name: 'to', value: 'FILE', summary: 'export: the new file; - for standard output' },
    { name: 'before', value: 'TIME', summary: 'drop: only what is older; 2h ago, or 2026-01-31T12:00:00Z' },
    { name: 'yes', summary: 'drop: do not ask' },
    jsonFlag,
  ],
  word: {
    name: 'ACTION',
    choices: actions,
    summary:
      'ls (the default) says what waits; verify reads all of it and names each damage; export copies it as OTLP JSON, one request a line; drop removes it for good, while no agent runs. All but drop change nothing and work beside an agent.',
  },
  exits: {
    [ExitCode.general]: 'verify found damage, or drop was refused',
    [ExitCode.exporting]: 'export could not copy all of it',
  },
  async run(args) {
    const action = actionOf(args.words[0])
    checkFlags(args, action)
    // Loaded here, for an agent that runs needs none of it.
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

/** A flag that an action would not look at is refused: `ls --before` would else seem to leave something out. */
function checkFlags(args: Arguments, action: Action): void {
  for (const [flag, users] of Object.entries(flagsOf))
    if (args.has(flag) && !users.includes(action))
      throw new StartError(`--${flag} is no flag of "svc queue ${action}"`, ExitCode.usage)
}
