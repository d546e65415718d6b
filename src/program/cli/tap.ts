import { parseDuration } from '../../foundation/lib/duration.ts'
import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Arguments, type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'
import type { TapOrder } from './tap/order.ts'

const signals = ['traces', 'logs', 'metrics', 'profiles'] as const
const longestMs = 999_999_999

export const tap: Command = {
  name: 'tap',
  summary: 'show individual spans, logs, metrics or profiles after processing',
  flags: [
    { name: 'service', value: 'NAME', summary: 'only this service' },
    { name: 'errors', summary: 'traces, logs: only failed spans, records of ERROR and above' },
    { name: 'min', value: 'TIME', summary: 'traces: only spans of at least this duration, such as 200ms' },
    {
      name: 'count',
      short: 'n',
      value: 'N',
      summary: 'stop after this number of items; default: run until ctrl-c',
    },
    jsonFlag,
    configFlag,
    urlFlag,
  ],
  word: { name: 'SIGNAL', summary: `one of ${signals.join(', ')}`, choices: signals, required: true },
  async run(args) {
    const order = orderOf(args)
    // Loaded on demand: the agent does not need it.
    const { runningAgent } = await import('./running-agent.ts')
    const { tapItems } = await import('./tap/items.ts')
    return tapItems(await runningAgent(args, `tap ${order.signal}`), order)
  },
}

function orderOf(args: Arguments): TapOrder {
  const signal = signalOf(args.words[0])
  if (args.has('errors') && signal !== 'traces' && signal !== 'logs')
    throw new StartError(`--errors is for traces and logs: ${signal} do not fail`, ExitCode.usage)
  if (args.has('min') && signal !== 'traces')
    throw new StartError('--min is for traces: only spans have a duration', ExitCode.usage)
  return {
    signal,
    service: args.value('service') ?? '',
    errors: args.has('errors'),
    minMs: minOf(args.value('min')),
    most: countOf(args.value('count')),
    json: args.has('json'),
  }
}

function signalOf(word: string | undefined): TapOrder['signal'] {
  const signal = signals.find(each => each === word?.toLowerCase())
  if (signal !== undefined) return signal
  const all = `the signals are ${signals.join(', ')}`
  const sentence = `T${all.slice(1)}`
  if (word === undefined) throw new StartError(`no signal given; ${all}`, ExitCode.usage)
  const near = nearest(word, signals)
  throw new StartError(
    `unknown signal "${word}"; ${near ? `did you mean ${near}? ${sentence}` : all}`,
    ExitCode.usage,
  )
}

function minOf(text: string | undefined): number {
  if (text === undefined) return 0
  const ms = parseDuration(text)
  if (ms !== undefined && ms <= longestMs) return Math.ceil(ms)
  throw new StartError(`--min must be a duration such as 200ms, not "${text}"`, ExitCode.usage)
}

function countOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new StartError(`--count must be a whole number of at least 1, not "${text}"`, ExitCode.usage)
}
