// Selects the programs of bpf/profile.bpf.c that the kernel accepts.

import { type BpfObject, LoadError } from '../../kernel/bpf-object.ts'
import { rodata } from '../../kernel/gen/profile.ts'
import { beginLoad, dropBegun } from '../../kernel/load-ahead.ts'
import { type Build, loadBuild, newFile } from '../../kernel/load-object.ts'
import type { MapHandle, Native, ObjectHandle } from '../../kernel/native.ts'

export const offCpuProgram = 'svc_profile_off_cpu'

/** Attempts in order: unwinding by tables, then by frame pointers. */
const attempts: readonly { readonly build: Build; readonly plain: boolean }[] = [
  { build: 'new', plain: false },
  { build: 'old', plain: false },
  { build: 'new', plain: true },
  { build: 'old', plain: true },
]

/** Errors that affect all programs equally: permissions and memory. */
const forAll: ReadonlySet<string> = new Set(['EPERM', 'ENOMEM'])

/** Id of the map with which the first attempt has begun. */
let begunWith: number | undefined

/** Begins the first attempt. */
export function beginStackObject(native: Native, requests: MapHandle | undefined): void {
  begunWith = requests?.id
  beginLoad(native, newFile('profile'), {
    name: 'profile',
    prepare: handle => prepare(native, handle, false, requests),
  })
}

function prepare(
  native: Native,
  object: ObjectHandle,
  plain: boolean,
  requests: MapHandle | undefined,
): void {
  for (const { name } of native.objectPrograms(object))
    native.objectSetAutoload(object, name, name.endsWith('_plain') === plain)
  if (requests === undefined) return
  native.objectReuseMap(object, 'requests', requests)
  native.objectSetData(object, '.rodata', rodata.hasRequests, Uint8Array.of(1))
}

export interface StackObject {
  readonly object: BpfObject
  readonly build: Build
  /** Why stacks are walked by frame pointers; undefined if by tables. */
  readonly degraded: string | undefined
}

/**
 * Loads the programs that unwind by tables, or by frame pointers if the kernel rejects those. `plainOnly`: only by
 * frame pointers. `requests`: request that each thread works on.
 */
export function loadStackObject(
  native: Native,
  plainOnly: boolean | undefined,
  requests: MapHandle | undefined,
): StackObject {
  // Begun with other programs, or with the map of another capture.
  if (plainOnly === true || requests?.id !== begunWith) dropBegun(native, newFile('profile'))
  let refusal: string | undefined = plainOnly === true ? 'requested by the caller' : undefined
  let last: unknown
  for (const { build, plain } of attempts) {
    if (plainOnly === true && !plain) continue
    try {
      const object = loadBuild(native, 'profile', build, {
        optional: [offCpuProgram],
        prepare: handle => prepare(native, handle, plain, build === 'old' ? undefined : requests),
      })
      return { object, build, degraded: plain ? refusal : undefined }
    } catch (error) {
      if (!(error instanceof LoadError) || forAll.has(error.code)) throw error
      refusal ??= error.refusal.reason
      last = error
    }
  }
  throw last
}
