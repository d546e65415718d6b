import { randomBytes } from 'node:crypto'
import type { Native, ObjectHandle } from './native.ts'

const seedsBytes = 16

/** The secret by which an object hashes owners (bpf/include/fair.h). Objects that share a ring share it. */
export function newOwnerSeeds(): Uint8Array {
  return randomBytes(seedsBytes)
}

/** Sets the secret of an object before its load. `offset`: of `owner_seeds` in its section. */
export function setOwnerSeeds(
  native: Native,
  object: ObjectHandle,
  offset: number,
  { seeds = newOwnerSeeds(), section = '.rodata' } = {},
): void {
  native.objectSetData(object, section, offset, seeds)
}
