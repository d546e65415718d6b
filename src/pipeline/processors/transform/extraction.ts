import { SearchPattern } from '../../../foundation/lib/search-pattern.ts'
import type { Attributes } from '../../../foundation/model/attributes.ts'
import { ownCopy } from '../limit-series/series-hash.ts'

/** Extracts parts of a text into attributes. */
export type Extract = (text: string, attributes: Attributes) => void

/**
 * Compiles a pattern whose named groups become attributes, named `prefix` and the group. Groups without a match set
 * nothing. Throws an error with a reason if the pattern is invalid or has no named group.
 */
export function extracting(source: string, prefix: string): Extract {
  const pattern = new SearchPattern(source, { keepsGroups: true })
  const named = pattern.groups
    .filter(({ name }) => name !== '')
    .map(({ name, number }) => ({ key: prefix + name, name, number }))
  if (named.length === 0) throw new Error('no named group, such as (?P<user>[a-z]+)')
  const lost = named.find(({ number }) => number === 0)
  if (lost !== undefined)
    throw new Error(
      `the group "${lost.name}" is in a part repeated with {…}; move the repetition into the group`,
    )
  return (text, attributes) => {
    const match = pattern.exec(text)
    if (match === null) return
    for (let i = 0; i < named.length; i++) {
      const { key, number } = named[i]!
      const value = match[number]
      // A later copy of the item must not retain the whole text.
      if (value !== undefined) attributes.set(key, ownCopy(value))
    }
  }
}
