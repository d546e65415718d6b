import { createLogger, errorText } from '../../../foundation/lib/logger.ts'
import type { Host, Tree } from '../../../foundation/model/host.ts'
import type { Keys } from '../../../foundation/schema/tree.ts'
import type { Collector, Env } from './collector.ts'

/** Reason why a collector rejects its options; undefined if it accepts them. Reads nothing from the host. */
export function optionsFault(
  unit: Collector<Keys>,
  options: Readonly<Record<string, unknown>>,
): string | undefined {
  try {
    unit.start(options as never, nowhere).close?.()
    return undefined
  } catch (error) {
    return errorText(error)
  }
}

function refuse(): never {
  throw new Error('a collector reads before it was asked to')
}

const tree: Tree = {
  root: '/',
  at: path => `/${path}`,
  text: refuse,
  find: refuse,
  number: refuse,
  bytes: refuse,
  list: refuse,
  directories: refuse,
  link: refuse,
  real: refuse,
  exists: refuse,
}
const host: Host = { proc: tree, sys: tree, root: tree, udev: tree }
const nowhere: Env = { host, log: createLogger({ level: 'error', format: 'json', write: () => undefined }) }
