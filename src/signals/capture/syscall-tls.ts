import type { BpfObject } from '../../kernel/bpf-object.ts'
import { rodata } from '../../kernel/gen/syscalls-tls.ts'
import { loadBuild } from '../../kernel/load-object.ts'
import { prepareOwners, type RingOwners } from './syscall-settings.ts'
import { namesOf, oneForEach } from './tls/programs.ts'
import { type TlsOptions, TlsProbes } from './tls/tls-probes.ts'

/**
 * Loads what reads inside TLS beside the tracepoints of system calls, which share their maps: an object of its own, as
 * kernels before 5.10 take nothing of it. Throws where the kernel refuses it. The object is to be closed after the probes.
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
      // Sections of data are each object's own, though libbpf calls them alike.
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
