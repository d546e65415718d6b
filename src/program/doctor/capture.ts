import { readFileSync } from 'node:fs'
import { BpfObject } from '../../kernel/bpf-object.ts'
import type { Finding } from '../../kernel/need.ts'
import { firstMissing } from '../../kernel/needs.ts'
import { backends } from '../../signals/capture/index.ts'
import { check } from './check.ts'
import { type ProgramFault, programFaults, tryPrograms } from './programs.ts'

export const capture = check({
  name: 'capture programs',
  group: 'traces',
  summary: 'The kernel accepts the actual programs of svc; they are loaded, not attached, and unloaded',
  impact: 'traces and request metrics',
  faults: programFaults('traces'),
  try: ({ loaded: { config } }) => {
    const { backend: wanted, network } = config.agent.ebpf
    const tried = backends.filter(({ name }) => wanted === 'auto' || name === wanted)
    // The one that the agent uses.
    const backend = tried.find(({ needs }) => firstMissing(needs) === undefined) ?? tried[0]
    const file = backend?.objectFor(network.capture_bytes)
    return backend === undefined || file === undefined ? [] : [tryBackend(backend.name, file)]
  },
})

function tryBackend(name: string, file: string): Finding<ProgramFault> {
  return tryPrograms<ProgramFault>(file, (native, path) => {
    BpfObject.load(native, readFileSync(path), { name }).close()
    return { ok: `those of the back end "${name}" were loaded` }
  })
}
