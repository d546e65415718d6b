import { parseDuration } from '../../foundation/lib/duration.ts'
import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Arguments, type Command, configFlag, jsonFlag, outputFlag, urlFlag } from './arguments.ts'
import type { ProfileOrder } from './profile/order.ts'

const kinds = { cpu: 'cpu', 'off-cpu': 'off_cpu', memory: 'memory' } as const

export const profile: Command = {
  name: 'profile',
  summary: 'record a profile of processes, as a table or a file',
  flags: [
    {
      name: 'duration',
      short: 'd',
      value: 'TIME',
      summary: 'duration of the recording: 1s to 60s; default: 10s',
    },
    {
      name: 'kind',
      short: 'k',
      value: 'KIND',
      summary: 'cpu (the default), off-cpu or memory',
      choices: Object.keys(kinds),
    },
    {
      name: 'rate',
      short: 'r',
      value: 'HZ',
      summary: 'cpu: samples per second per CPU, 1 to 999; default: 99',
    },
    outputFlag,
    jsonFlag,
    configFlag,
    urlFlag,
  ],
  word: {
    name: 'TARGET',
    summary: 'a pid, or the name of a service; default: all processes of the host',
  },
  async run(args) {
    const order = orderOf(args)
    const output = args.value('output')
    if (output !== undefined && args.has('json'))
      throw new StartError(
        '--json and --output exclude each other; -o FILE.json writes the same',
        ExitCode.usage,
      )
    // Loaded on demand: the agent does not need it.
    const { record } = await import('./profile/record.ts')
    return record(args, order, output)
  },
}

function orderOf(args: Arguments): ProfileOrder {
  const kind = args.value('kind') ?? 'cpu'
  if (!Object.hasOwn(kinds, kind)) {
    const near = nearest(kind, Object.keys(kinds))
    throw new StartError(
      `unknown kind "${kind}"; ${near ? `did you mean ${near}?` : 'the kinds are cpu, off-cpu and memory'}`,
      ExitCode.usage,
    )
  }
  const target = args.words[0] ?? ''
  if (/^0+$/.test(target))
    throw new StartError('there is no process 0; omit it for all processes', ExitCode.usage)
  const rate = args.value('rate')
  if (rate !== undefined && kind !== 'cpu')
    throw new StartError(`--rate is for the kind cpu: ${kind} has no rate`, ExitCode.usage)
  if (rate !== undefined && !/^[1-9]\d{0,2}$/.test(rate))
    throw new StartError('--rate must be a whole number from 1 to 999', ExitCode.usage)
  return {
    kind: kinds[kind as keyof typeof kinds],
    seconds: secondsOf(args.value('duration') ?? '10s'),
    target,
    rate: Number(rate ?? 0),
  }
}

/** A duration, or plain seconds. */
function secondsOf(text: string): number {
  const seconds = /^\d+$/.test(text) ? Number(text) : (parseDuration(text) ?? Number.NaN) / 1000
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= 60) return seconds
  throw new StartError(`--duration must be whole seconds from 1s to 60s, not "${text}"`, ExitCode.usage)
}
