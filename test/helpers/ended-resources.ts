import type { Resource } from '../../src/foundation/model/resource.ts'
import type { ProcessTable } from '../../src/identity/entities/process-table.ts'

const told = new WeakMap<ProcessTable, Resource[]>()

/** Notes which resources of a table end, from now on. */
export function noteEnds(processes: ProcessTable): ProcessTable {
  const all: Resource[] = []
  told.set(processes, all)
  processes.onEnd(resource => all.push(resource))
  return processes
}

/** The resources that ended since it was asked before; looks at all processes. */
export async function endsOf(processes: ProcessTable): Promise<Resource[]> {
  await processes.look()
  return told.get(processes)!.splice(0)
}
