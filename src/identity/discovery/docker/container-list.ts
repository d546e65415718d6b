import { maxContainers } from '../_inspections.ts'

/**
 * Container IDs in an answer to `GET /containers/json`. Only the IDs are read, without making objects of all
 * the rest: the list of a large host has megabytes. A label value cannot contain one, as JSON escapes its
 * quotes; a label with the name `Id` costs a request for a container that does not exist.
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
