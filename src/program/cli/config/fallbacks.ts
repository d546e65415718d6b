import { synonymousKeys } from '../../../config/effective.ts'
import { schema } from '../../../config/index.ts'
import { ExitCode } from '../../../foundation/lib/start-error.ts'
import { wrapped } from '../../../foundation/lib/terminal-text.ts'
import { signals } from '../../../foundation/model/signal.ts'
import { defaultOf } from '../../../foundation/schema/collections.ts'
import { type Branch, isBranch, type Key, leaves } from '../../../foundation/schema/tree.ts'
import { print } from '../terminal.ts'
import { type Leaf, yamlTree } from './yaml-tree.ts'

const columns = 100
const intro = `# All keys of svc with their defaults. The default of a key in a comment depends on another key, or on the host.
`
const fallbackOf = new Map([...leaves(schema)].map(([key, leaf]) => [key, defaultOf(leaf)]))

/** Prints every key with its default. As YAML it is a file that changes nothing, ready to edit. */
export function fallbacks(json: boolean): ExitCode {
  if (json) print(`${JSON.stringify(Object.fromEntries(fallbackOf), null, 2)}\n`)
  else print(`${intro}\n${yamlTree([...leaves(schema)].map(leafOf), titleOf)}`)
  return ExitCode.ok
}

function leafOf([key, leaf]: [string, Key<unknown>]): Leaf {
  const depth = key.split('.').length - 1
  const marks = [...(leaf.restart ? ['changes need a restart'] : []), ...(leaf.secret ? ['secret'] : [])]
  const meaning = `${leaf.description}${marks.length > 0 ? ` (${marks.join('; ')})` : ''}`
  const above = [
    ...wrapped(meaning, columns - 2 * depth),
    ...wrapped(`Takes ${leaf.kind.expects}.`, columns - 2 * depth),
  ]
  return {
    key,
    value: defaultOf(leaf),
    above,
    isComment: leaf.defaultText !== undefined || followsAnother(key),
  }
}

/**
 * A key that overrides another, or a more general one: if set, it would hide the other. A key whose own default differs
 * must be set, because the general one is.
 */
function followsAnother(key: string): boolean {
  if (synonymousKeys.some(([winner]) => winner === key)) return true
  const signal = signals.find(each => key.startsWith(`otlp.${each}.`) || key === `queues.${each}.batch_size`)
  if (signal === undefined) return false
  const general = key.startsWith('otlp.') ? key.replace(`${signal}.`, '') : 'pipeline.export.batch.size'
  return isDefaultOf(key, fallbackOf.get(general))
}

function isDefaultOf(key: string, value: unknown): boolean {
  return value !== undefined && JSON.stringify(fallbackOf.get(key)) === JSON.stringify(value)
}

function titleOf(path: string): string {
  const branch = path
    .split('.')
    .reduce<Branch | Key<unknown> | undefined>(
      (at, name) => (at && isBranch(at) ? at.keys[name] : undefined),
      schema,
    )
  return branch?.description ?? ''
}
