// Runs groups of test files, as many in parallel as they allow.
import { GroupProcess, type ProcessOptions } from './group-process.ts'
import { type Owns, together } from './owns.ts'

/** Files that share a process, in their order. */
export interface Group {
  readonly files: readonly string[]
  readonly owns: Owns
}

/**
 * Runs all groups in order, and resolves when the last one has ended. If a file ends its process, another runs the
 * rest. After `stop` nothing is started.
 */
export async function schedule(
  groups: readonly Group[],
  atOnce: number,
  stop: AbortSignal,
  optionsOf: (group: Group, slot: number) => ProcessOptions,
): Promise<void> {
  const waiting = [...groups]
  const underWay = new Map<Group, Promise<void>>()
  /** One for each parallel group, to divide numbered resources. */
  const slots = Array.from({ length: atOnce }, (_, slot) => slot)
  const run = async (group: Group): Promise<void> => {
    const slot = slots.shift()!
    const files = await new GroupProcess(group.files, optionsOf(group, slot)).finished()
    slots.push(slot)
    underWay.delete(group)
    if (files.length > 0) waiting.unshift({ ...group, files })
  }
  while (underWay.size > 0 || (waiting.length > 0 && !stop.aborted)) {
    const canStart = (group: Group) => [...underWay.keys()].every(other => together(group.owns, other.owns))
    const at = underWay.size < atOnce && !stop.aborted ? waiting.findIndex(canStart) : -1
    if (at >= 0) {
      const [group] = waiting.splice(at, 1)
      underWay.set(group!, run(group!))
    } else await Promise.race(underWay.values())
  }
}
