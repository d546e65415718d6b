import { maxContainers } from '../_inspections.ts'

/**
 * The containers in an answer to `GET /containers/json`. Only their numbers are taken, without making objects of all
 * the rest: the list of a large host has megabytes. The value of a label can hold none of them, as JSON escapes its
 * quotes; a label that is called `Id` costs a question for a container that is not there.
 */
export function listedContainers(answer: Buffer): Set<string> | undefined {
  const text = answer.toString('latin1')
  if (!/^\s*\[/.test(text) || !/\]\s*$/.test(text.slice(-64))) return undefined
  const ids = new Set<string>()
  for (const [, id] of text.matchAll(/"Id": ?"([0-9a-f]{64})"/g)) {
    if (ids.size >= maxContainers) break
    ids.add(id!)
  }
  return ids
}
