import { randomBytes } from 'node:crypto'
import { rodata, svcProtocol, svcSyscallSettings } from '../../kernel/gen/syscalls.ts'
import { type Native, type ObjectHandle, programType } from '../../kernel/native.ts'
import { tracepointFields } from '../../kernel/tracepoints.ts'
import { type CaptureOptions, maySkip } from './capture.ts'

/** bpf_get_current_ancestor_cgroup_id (linux/bpf.h). */
const ancestorHelper = 123
const setState = 'sock/inet_sock_set_state'

/**
 * Before the load. Since Linux 7 programs of system calls may lose the CPU, and are left out for others meanwhile: there
 * they have scratch to choose from and run twice. Before, one of each is enough.
 */
export function prepareTurns(native: Native, object: ObjectHandle, kernel: string | undefined): void {
  if (maySkip(kernel)) return
  native.objectSetMaxEntries(object, 'scratch', 1)
  for (const { name } of native.objectPrograms(object))
    if (name.startsWith('svc_again_')) native.objectSetAutoload(object, name, false)
}

/** By what owners are told apart who share the ring: the same for all objects that write into it. */
export interface RingOwners {
  readonly tellsAncestors: Uint8Array
  readonly ownerSeeds: Uint8Array
}

export function ringOwners(native: Native): RingOwners {
  const tells = native.probeHelper(programType.tracepoint, ancestorHelper) === 1
  return {
    tellsAncestors: new Uint8Array([tells ? 1 : 0]),
    ownerSeeds: randomBytes(rodata.ownerSeedsSize),
  }
}

/** Before the load of an object that writes into the ring. `places`: where it has what it is told. */
export function prepareOwners(
  native: Native,
  object: ObjectHandle,
  places: Readonly<Record<keyof RingOwners, number>>,
  owners: RingOwners,
): void {
  native.objectSetData(object, '.rodata', places.tellsAncestors, owners.tellsAncestors)
  native.objectSetData(object, '.rodata', places.ownerSeeds, owners.ownerSeeds)
}

/** What the programs are told. `magic`: who closes this descriptor is the agent. */
export function settingsBytes({ protocols }: CaptureOptions, bufferBytes: number, magic: number): Buffer {
  const settings = Buffer.alloc(svcSyscallSettings.size)
  settings.writeUInt32LE(bufferBytes / 4, svcSyscallSettings.wakeupBytes)
  settings.writeUInt32LE(magic, svcSyscallSettings.magic)
  settings.writeUInt32LE(protocolBits(protocols), svcSyscallSettings.enabled)
  settings.writeUInt32LE(hasWideProtocol() ? 1 : 0, svcSyscallSettings.wide)
  return settings
}

/** Since Linux 5.6 the protocol has two bytes in the record, and what follows stands a byte further. */
function hasWideProtocol(): boolean {
  const fields = tracepointFields(setState) ?? []
  return fields.find(({ name }) => name === 'protocol')?.size === 2
}

function protocolBits(names: readonly string[]): number {
  let bits = 0
  for (const [index, name] of svcProtocol.entries()) if (names.includes(name)) bits |= 1 << index
  return bits
}
