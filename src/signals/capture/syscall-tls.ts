import type { BpfObject } from '../../kernel/bpf-object.ts'
import { rodata } from '../../kernel/gen/syscalls-tls.ts'
import { loadBuild } from '../../kernel/load-object.ts'
import { prepareOwners, type RingOwners } from './syscall-settings.ts'
import { namesOf, oneForEach } from './tls/programs.ts'
import { type TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/**
 * Loads the programs that read inside TLS beside the system call tracepoints, and shares their maps. A separate object,
 * as kernels before 5.10 reject all of it. Throws if the kernel rejects it. Close the object after the probes.
 */
export function openSyscallTls(
  capture: BpfObject,
  options: TlsOptions & { readonly selfPid: number; readonly owners: RingOwners },
): { readonly object: BpfObject; readonly probes: TlsProbes } {
  const { native } = capture
  const shared = new Set(native.objectMaps(capture.handle).map(({ name }) => name))
  const object = loadBuild(native, 'syscalls-tls', 'new', {
    prepare: handle => {
      prepareOwners(native, handle, rodata, options.owners)
      // Data sections are private to each object, although libbpf gives them the same names.
      for (const { name } of native.objectMaps(handle))
        if (shared.has(name) && !name.includes('.')) native.objectReuseMap(handle, name, capture.map(name))
      for (const program of namesOf(oneForEach)) native.uprobePrepare(handle, program)
    },
  })
  try {
    const attached = capture.map('tls_attached')
    const setAttached = (on: boolean) =>
      native.mapUpdate(attached, Buffer.alloc(4), Buffer.from(Uint32Array.of(Number(on)).buffer), 0)
    return { object, probes: new TlsProbes(object, { ...options, programs: oneForEach, setAttached }) }
  } catch (error) {
    object.close()
    throw error
  }
}
