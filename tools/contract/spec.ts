// test/spec: what svc promises, as data.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const folder = join(import.meta.dirname, '../../test/spec')

function read<T>(name: string): T {
  return parse(readFileSync(join(folder, name), 'utf8')) as T
}

/** A tree of texts; a key such as `a/b` stands for two equal keys. */
export interface Tree {
  readonly [name: string]: Tree | string
}

/** A field of a document: the name of its type, its fields, or one item of a list. */
export type Field = string | readonly [Field] | { readonly [name: string]: Field }

export interface Service {
  readonly documents: Readonly<Record<string, Field>>
  /** `GET /status` → status → name of the document, or null. */
  readonly paths: Readonly<Record<string, Readonly<Record<number, string | null>>>>
  readonly errors: Readonly<Record<string, readonly number[]>>
  readonly endpoint: readonly string[]
  /** Name → type and labels. */
  readonly metrics: Readonly<Record<string, string>>
  readonly host_metrics: Readonly<Record<string, string>>
  readonly commands: readonly string[]
  readonly flags: readonly string[]
  readonly exit_codes: Readonly<Record<number, string>>
  readonly log: readonly string[]
}

export const service: Service = read('service.yaml')

/** Differences from the tree of keys, with reasons. */
export interface Differences {
  /** Keys with another default: its value, and the page with the reason. */
  readonly defaults: Readonly<
    Record<string, { readonly is: unknown; readonly page: string; readonly why: string }>
  >
  /** Keys or branches whose feature does not exist yet. */
  readonly later: Readonly<Record<string, string>>
  /** Intended faults, by a part of their text, with reasons. */
  readonly accepted: Readonly<Record<string, string>>
  /** Facts and keys to be added by another change. */
  readonly pending: Readonly<Record<string, string>>
}

export const differences: Differences = read('differences.yaml')

/** Keys by path, with `TYPE` and the written default, if there is one. */
export function promisedKeys(): ReadonlyMap<string, readonly [type: string, fallback: string | undefined]> {
  const keys = new Map<string, readonly [string, string | undefined]>()
  const walk = (tree: Tree, path: string): void => {
    // Choices are never key names, so `/` is unambiguous.
    for (const [names, node] of Object.entries(tree))
      for (const name of names.split('/')) {
        const here = path === '' ? name : `${path}.${name}`
        if (typeof node !== 'string') walk(node, here)
        else {
          const [type, ...rest] = node.split(' = ')
          keys.set(here, [type!, rest.length === 0 ? undefined : rest.join(' = ')])
        }
      }
  }
  walk(read('keys.yaml'), '')
  return keys
}
