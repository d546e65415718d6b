import { maxContainers } from '../_inspections.ts'

/**
 * Container IDs in a response to `GET /containers/json`. Parses only the IDs, without objects for the rest: the list of
 * a large host has megabytes. Label values cannot match, as JSON escapes their quotes; a label named `Id` costs a
 * request for a container that does not exist.
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
