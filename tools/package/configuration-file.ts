// /etc/svc/config.yaml as installed by packages: every section in reading order, commented out.

import { synonymousKeys } from '../../src/config/effective.ts'
import { schema } from '../../src/config/index.ts'
import { wrapped } from '../../src/foundation/lib/terminal-text.ts'
import { signals } from '../../src/foundation/model/signal.ts'
import { defaultOf } from '../../src/foundation/schema/collections.ts'
import { type Branch, isBranch, type Key, leaves } from '../../src/foundation/schema/tree.ts'
import { type Leaf, yamlTree } from '../../src/program/cli/config/yaml-tree.ts'

const columns = 100
const batchSize = schema.keys.pipeline.keys.export.keys.batch.keys.size.default

/** The destination of data comes first: it is the most common setting. */
const first = ['otlp', 'resource']

const intro = `## svc works without this file: "sudo svc ui" prints a link to its page, and it sends nothing.
## Remove the "#" from the lines that you want, and from the names of their sections.
## Everyone can read this file: keep secrets in files of root:svc, mode 0640, and write \${file:/etc/svc/token}
## Values after a "#" are the defaults. Then: svc validate, systemctl reload svc. More: man svc, svc config --default.
`

/**
 * A host has other users, and neighbours: an installed package answers only this host. To scrape it from elsewhere,
 * change a line.
 */
const listen = [
  '#  # For this host only. For scrapers on other hosts write :19090; without a token they see only public data.',
  '  listen: 127.0.0.1:19090',
]

/** A file that sets the listen address. With one `#` less on each line it sets every other key to its default. */
export function configurationFile(): string {
  const rows = [...leaves(schema)].filter(([key, leaf]) => isShown(key, leaf)).map(leafOf)
  const sections = first.map(name => rows.filter(({ key }) => sectionOf(key) === name))
  const others = rows.filter(({ key }) => !first.includes(sectionOf(key)))
  const text = [...sections, others].map(each => yamlTree(each, titleOf)).join('\n')
  const lines = text.replace(/^(?=.)/gm, '#').split('\n')
  const section = lines.indexOf('#self_telemetry:')
  lines[section] = 'self_telemetry:'
  lines.splice(lines.indexOf('#  listen: :19090', section), 1, ...listen)
  return `${intro}\n${lines.join('\n')}`
}

/** Omits keys that override another key, and would hide it, and keys without effect in this version. */
function isShown(key: string, leaf: Key<unknown>): boolean {
  const standsIn =
    synonymousKeys.some(([winner]) => winner === key) ||
    signals.some(each => key.startsWith(`otlp.${each}.`)) ||
    (signals.some(each => key === `queues.${each}.batch_size`) && leaf.default === batchSize)
  return !standsIn && leaf.built !== false && parentsOf(key).every(each => branchOf(each)?.built !== false)
}

function leafOf([key, leaf]: [string, Key<unknown>]): Leaf {
  const depth = key.split('.').length - 1
  const restart = leaf.restart ? ' (after a restart)' : ''
  return {
    key,
    value: defaultOf(leaf),
    above: wrapped(`${leaf.description}${restart}`, columns - 2 * depth),
    isComment: leaf.defaultText !== undefined,
  }
}

function sectionOf(key: string): string {
  return key.split('.', 1)[0]!
}

function parentsOf(key: string): string[] {
  const words = key.split('.').slice(0, -1)
  return words.map((_, i) => words.slice(0, i + 1).join('.'))
}

function branchOf(path: string): Branch | undefined {
  const names = path.split('.')
  const found = names.reduce<Branch | Key<unknown> | undefined>(
    (at, name) => (at && isBranch(at) ? at.keys[name] : undefined),
    schema,
  )
  return found && isBranch(found) ? found : undefined
}

function titleOf(path: string): string {
  return branchOf(path)?.description ?? ''
}
