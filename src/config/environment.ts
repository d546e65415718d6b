import { nearest } from '../foundation/lib/nearest.ts'
import type { Report } from '../foundation/schema/problem.ts'
import {
  type Branch,
  isBranch,
  join,
  type Key,
  readBranch,
  readKey,
  type Settings,
} from '../foundation/schema/tree.ts'
import { looseScalar } from '../foundation/schema/value.ts'

/** Variables of the process: not keys of the configuration. */
const processVariables: ReadonlySet<string> = new Set(['SVC_CONFIG_FILE', 'SVC_TOKEN', 'SVC_URL'])

/** Variables that Kubernetes sets for a Service whose name begins with `svc`. */
const serviceLink = /^SVC_(?:SERVICE_HOST$|SERVICE_PORT|PORT|.*_SERVICE_|.*_PORT)/

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads `SVC_*` variables: a key's path in capitals with `_` for `.`. Since keys contain `_` too, names are looked up
 * in the tree; using a name that two keys share is an error.
 */
export function readEnvironment(root: Branch, env: Environment, report: Report, notes: string[]): Settings {
  const settings: Settings = new Map()
  const given = Object.keys(env).filter(name => name.startsWith('SVC_') && env[name] !== undefined)
  if (given.length === 0) return settings
  const known = variables(root)
  for (const name of given.sort()) {
    if (processVariables.has(name)) continue
    const value = looseScalar(name, env[name]!)
    const targets = known.get(name)
    if (targets === undefined) {
      if (serviceLink.test(name)) {
        notes.push(`${name} is ignored: it looks like a variable that Kubernetes sets for a Service`)
        continue
      }
      const near = nearest(name, known.keys())
      const hint = near === undefined ? 'no key of the configuration has this name' : `did you mean ${near}?`
      report.problem(value.place, '', `unknown variable; ${hint}`)
    } else if (targets.length > 1) {
      const paths = targets.map(target => target.canonical).join(' and ')
      report.problem(value.place, '', `the name is ambiguous: it can mean ${paths}; set the key in the file`)
    } else {
      const { node, canonical } = targets[0]!
      const at = { written: canonical, canonical }
      if (isBranch(node)) readBranch(node, value, at, settings, report)
      else readKey(node, value, at, settings, report)
    }
  }
  return settings
}

interface Target {
  readonly canonical: string
  readonly node: Key<unknown> | Branch
}

/** All variables of the tree. A branch that can be switched has one too, for a plain boolean. */
function variables(root: Branch): Map<string, Target[]> {
  const known = new Map<string, Target[]>()
  const switches = new Map<string, Target[]>()
  const add = (into: Map<string, Target[]>, path: string, target: Target) => {
    const name = variableOf(path)
    into.set(name, [...(into.get(name) ?? []), target])
  }
  const walk = (branch: Branch, path: string) => {
    for (const [name, node] of Object.entries(branch.keys)) {
      const canonical = join(path, name)
      if (!isBranch(node)) add(known, canonical, { canonical, node })
      else {
        if (node.keys.enabled) add(switches, canonical, { canonical, node })
        walk(node, canonical)
      }
    }
    for (const [group, names] of Object.entries(branch.groups ?? {})) {
      for (const name of names) {
        const canonical = join(path, name)
        add(known, join(join(path, group), name), { canonical, node: branch.keys[name]! })
      }
    }
  }
  walk(root, '')
  for (const [name, targets] of switches) if (!known.has(name)) known.set(name, targets)
  return known
}

/** The variable that sets a key. */
export function variableOf(path: string): string {
  return `SVC_${path.replaceAll('.', '_').toUpperCase()}`
}
