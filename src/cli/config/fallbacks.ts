import { sameThing } from '../../config/effective.ts'
import { schema } from '../../config/index.ts'
import { ExitCode } from '../../lib/start-error.ts'
import { signals } from '../../model/signal.ts'
import { defaultOf } from '../../schema/collections.ts'
import { type Branch, isBranch, type Key, leaves } from '../../schema/tree.ts'
import { print, wrapped } from '../terminal.ts'
import { type Leaf, yamlTree } from './yaml-tree.ts'

const columns = 100

/** Prints every key with its default. As YAML it is a file that changes nothing, to be edited. */
export function fallbacks(json: boolean): ExitCode {
  const all = [...leaves(schema)]
  if (json)
    print(
      `${JSON.stringify(Object.fromEntries(all.map(([key, leaf]) => [key, defaultOf(leaf)])), null, 2)}\n`,
    )
  else
    print(
      `# Every key of svc with its default. A key that stands as a comment follows another one.\n\n${yamlTree(all.map(leafOf), titleOf)}`,
    )
  return ExitCode.ok
}

function leafOf([key, leaf]: [string, Key<unknown>]): Leaf {
  const depth = key.split('.').length - 1
  const marks = [
    ...(leaf.restart ? ['a change waits for a restart'] : []),
    ...(leaf.secret ? ['secret'] : []),
  ]
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

/** Of two keys for one thing the one that wins, and what stands in for a general key: set, they would hide the other one. */
function followsAnother(key: string): boolean {
  if (sameThing.some(([winner]) => winner === key)) return true
  return signals.some(signal => key.startsWith(`otlp.${signal}.`) || key === `queues.${signal}.batch_size`)
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
