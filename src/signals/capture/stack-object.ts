// Which programs of bpf/profile.bpf.c a kernel takes.

import { type BpfObject, LoadError } from '../../kernel/bpf-object.ts'
import { rodata } from '../../kernel/gen/profile.ts'
import { type Build, loadBuild } from '../../kernel/load-object.ts'
import type { MapHandle, Native } from '../../kernel/native.ts'

export const offCpuProgram = 'svc_profile_off_cpu'

/** What is tried until the kernel takes it: to walk by tables, else along frame pointers. */
const attempts: readonly { readonly build: Build; readonly plain: boolean }[] = [
  { build: 'new', plain: false },
  { build: 'old', plain: false },
  { build: 'new', plain: true },
  { build: 'old', plain: true },
]

/** Refusals that no other programs would change: of rights, and of memory. */
const forAll: ReadonlySet<string> = new Set(['EPERM', 'ENOMEM'])

export interface StackObject {
  readonly object: BpfObject
  readonly build: Build
  /** Why stacks are walked along frame pointers; undefined: by tables. */
  readonly degraded: string | undefined
}

/**
 * Loads what walks by tables; where the kernel takes none of that, what it does. `plainOnly`: as there. `requests`: which
 * request each thread works on.
 */
export function loadStackObject(
  native: Native,
  plainOnly: boolean | undefined,
  requests: MapHandle | undefined,
): StackObject {
  let refusal: string | undefined = plainOnly === true ? 'requested by the caller' : undefined
  let last: unknown
  for (const { build, plain } of attempts) {
    if (plainOnly === true && !plain) continue
    try {
      const object = loadBuild(native, 'profile', build, {
        optional: [offCpuProgram],
        prepare: handle => {
          for (const { name } of native.objectPrograms(handle))
            native.objectSetAutoload(handle, name, name.endsWith('_plain') === plain)
          if (requests === undefined || build === 'old') return
          native.objectReuseMap(handle, 'requests', requests)
          native.objectSetData(handle, '.rodata', rodata.hasRequests, Uint8Array.of(1))
        },
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
