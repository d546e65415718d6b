import { parse } from 'yaml'
import { type LoadedConfig, schema, shownKeys } from '../../../config/index.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { terminalJson, terminalText } from '../../../foundation/lib/terminal-text.ts'
import { defaultOf } from '../../../foundation/schema/collections.ts'
import { leaves } from '../../../foundation/schema/tree.ts'
import type { AgentDocument } from '../../../view/api/ui/documents.ts'
import { waysText } from '../../client/agent-client.ts'
import type { Arguments } from '../arguments.ts'
import { configurationOf, exitOf, sayProblems } from '../configuration.ts'
import { documentOf, lookForAgent, noAgent } from '../running-agent.ts'
import { print, say } from '../terminal.ts'
import { yamlTree } from './yaml-tree.ts'

interface Shown {
  readonly key: string
  readonly value: unknown
  readonly default: unknown
  readonly origin: string
}

/**
 * Prints the effective configuration: of the running agent, or of the file as it would be loaded. Secrets are redacted.
 */
export async function effective(args: Arguments, onlyDifferent: boolean): Promise<ExitCode> {
  const loaded = configurationOf(args)
  const answer = await ofAgent(args)
  const { keys, source } = typeof answer === 'string' ? ofFile(loaded, answer) : answer
  if (keys === undefined) {
    sayProblems(loaded)
    return exitOf(loaded)
  }
  say(`${source}\n`)
  const shown = onlyDifferent ? keys.filter(isDifferent) : keys
  if (args.has('json')) print(`${terminalJson(JSON.stringify({ source, keys: shown }, null, 2))}\n`)
  else if (shown.length === 0) print('# no differences from the defaults\n')
  else
    print(
      yamlTree(
        shown.map(each => ({ key: each.key, value: each.value, beside: besideOf(each, onlyDifferent) })),
      ),
    )
  return ExitCode.ok
}

function besideOf({ origin, default: fallback }: Shown, withFallback: boolean): string {
  return terminalText(withFallback ? `${origin}; default: ${JSON.stringify(fallback)}` : origin, true)
}

/** A host-dependent default is still a default. */
function isDifferent({ value, default: fallback, origin }: Shown): boolean {
  return origin !== 'default' && JSON.stringify(value) !== JSON.stringify(fallback)
}

interface Found {
  /** Undefined: none, because the file is invalid. */
  readonly keys: readonly Shown[] | undefined
  readonly source: string
}

/** A text is why it is unknown. */
async function ofAgent(args: Arguments): Promise<Found | string> {
  const { client, tried } = await lookForAgent(args)
  const named = args.value('url') ?? process.env.SVC_URL
  if (client === undefined) {
    const why = `no agent answers (${waysText(tried)})`
    if (named) throw new StartError(`cannot show the configuration: ${why}`, noAgent(tried))
    return why
  }
  try {
    const { config } = await documentOf<AgentDocument>(client, '/ui/api/agent', 'query the agent')
    const keys = config.map(({ key, value, default: fallback, origin }) => ({
      key,
      value: parse(value) as unknown,
      default: parse(fallback) as unknown,
      origin,
    }))
    return { keys, source: `from the agent at ${client.address}` }
  } catch (error) {
    if (named || !(error instanceof StartError)) throw error
    return error.message
  }
}

function ofFile(loaded: LoadedConfig, why: string): Found {
  const { file, problems } = loaded
  const from = file === null ? 'the defaults and the environment' : file
  const source = `${why}; showing ${from}, as an agent would read it`
  if (problems.length > 0) return { keys: undefined, source }
  const fallbackOf = new Map([...leaves(schema)].map(([key, leaf]) => [key, defaultOf(leaf)]))
  return { keys: shownKeys(loaded).map(each => ({ ...each, default: fallbackOf.get(each.key) })), source }
}
