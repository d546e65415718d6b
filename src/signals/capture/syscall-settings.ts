import { svcProtocol, svcSyscallSettings } from '../../kernel/gen/syscalls.ts'
import { type Native, type ObjectHandle, programType } from '../../kernel/native.ts'
import { newOwnerSeeds, setOwnerSeeds } from '../../kernel/owner-seeds.ts'
import { tracepointFields } from '../../kernel/tracepoints.ts'
import { type CaptureOptions, maySkip } from './capture.ts'

/** bpf_get_current_ancestor_cgroup_id (linux/bpf.h). */
const ancestorHelper = 123
const setState = 'sock/inet_sock_set_state'

/**
 * Call before the load. Since Linux 7, system call programs may be preempted and are then skipped for other tasks: they
 * need a choice of scratch buffers, and run twice. Before, one of each is enough.
 */
export function prepareTurns(native: Native, object: ObjectHandle, kernel: string | undefined): void {
  if (maySkip(kernel)) return
  native.objectSetMaxEntries(object, 'scratch', 1)
  for (const { name } of native.objectPrograms(object))
    if (name.startsWith('svc_again_')) native.objectSetAutoload(object, name, false)
}

/** Distinguishes owners that share the ring; the same for all objects that write to it. */
export interface RingOwners {
  readonly tellsAncestors: Uint8Array
  readonly ownerSeeds: Uint8Array
}

export function ringOwners(native: Native): RingOwners {
  const tells = native.probeHelper(programType.tracepoint, ancestorHelper) === 1
  return {
    tellsAncestors: new Uint8Array([tells ? 1 : 0]),
    ownerSeeds: newOwnerSeeds(),
  }
}

/** Call before the load of an object that writes to the ring. `places`: offsets of its variables. */
export function prepareOwners(
  native: Native,
  object: ObjectHandle,
  places: Readonly<Record<keyof RingOwners, number>>,
  owners: RingOwners,
): void {
  native.objectSetData(object, '.rodata', places.tellsAncestors, owners.tellsAncestors)
  setOwnerSeeds(native, object, places.ownerSeeds, { seeds: owners.ownerSeeds })
}

/** Settings of the programs. `magic`: number of the descriptor that the agent closes to identify itself. */
export function settingsBytes({ protocols }: CaptureOptions, bufferBytes: number, magic: number): Buffer {
  const settings = Buffer.alloc(svcSyscallSettings.size)
  settings.writeUInt32LE(bufferBytes / 4, svcSyscallSettings.wakeupBytes)
  settings.writeUInt32LE(magic, svcSyscallSettings.magic)
  settings.writeUInt32LE(protocolBits(protocols), svcSyscallSettings.enabled)
  settings.writeUInt32LE(hasWideProtocol() ? 1 : 0, svcSyscallSettings.wide)
  return settings
}

/** Since Linux 5.6 the protocol has two bytes in the record, and all later fields move by one byte. */
function hasWideProtocol(): boolean {
  const fields = tracepointFields(setState) ?? []
  return fields.find(({ name }) => name === 'protocol')?.size === 2
}

function protocolBits(names: readonly string[]): number {
  let bits = 0
  for (const [index, name] of svcProtocol.entries()) if (names.includes(name)) bits |= 1 << index
  return bits
}
