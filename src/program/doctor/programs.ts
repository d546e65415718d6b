import { findAsset } from '../../kernel/assets.ts'
import { LoadError } from '../../kernel/bpf-object.ts'
import { loadNative, type Native, Unsupported } from '../../kernel/native.ts'
import type { Fault, Finding, Topic } from '../../kernel/need.ts'

export type ProgramFault = 'no_jit' | 'no_memory' | 'too_old' | 'refused' | 'absent' | 'untried'

/** Faults of loading an object of programs. `topic`: the group that tests them. */
export function programFaults(topic: Topic): Readonly<Record<ProgramFault, Fault>> {
  return {
    no_jit: {
      state: 'missing',
      what: 'the eBPF JIT compiler of the kernel is off, and the interpreter does not support these programs',
      hints: { sysctl: 'sysctl -w net.core.bpf_jit_enable=1' },
    },
    no_memory: {
      state: 'missing',
      what: 'no memory for the maps: the cgroup limit or the host’s memory is exhausted',
      hints: {
        // Twice the limit of the unit, the container and the chart.
        systemd: 'MemoryMax=1G',
        container: 'docker run --memory=1g',
        kubernetes: 'resources: {limits: {memory: 1Gi}}',
        ...(topic === 'traces' && { config: 'agent.ebpf.ringbuf_size: 512Ki' }),
      },
    },
    too_old: {
      state: 'missing',
      what: 'the kernel does not support an instruction, helper, type or map type of the programs; the detail names it',
      hints: { kernel: 'run Linux 5.10 or newer; 6.3 and newer have everything that svc uses' },
    },
    refused: {
      state: 'missing',
      what: 'the verifier of the kernel rejects a program',
      hints: {
        any: 'set agent.ebpf.debug: true to log the verifier output, and report it with the kernel version',
        kernel: 'run another kernel, 6.3 or newer',
      },
    },
    absent: {
      state: 'missing',
      what: 'the compiled programs are not where the package installs them',
      hints: { package: 'reinstall the svc package; in a source tree: bash tools/setup' },
    },
    untried: {
      state: 'unknown',
      what: 'this cannot be checked until svc may load programs and has the native addon, BTF and the tracepoints',
      hints: { any: `fix what svc doctor traces reports as missing, then rerun svc doctor ${topic}` },
    },
  }
}

/** The finding of `load`, which loads and unloads the programs of a built file; or why the kernel rejected them. */
export function tryPrograms<F extends string>(
  file: string,
  load: (native: Native, path: string) => Finding<F>,
): Finding<F | ProgramFault> {
  const native = loadNative()
  if (native instanceof Unsupported)
    return { fault: 'untried', detail: 'cannot be checked without the native addon' }
  const path = findAsset(file)
  if (path === undefined) return { fault: 'absent', detail: `cannot find the BPF object ${file}` }
  try {
    return load(native, path)
  } catch (error) {
    if (!(error instanceof LoadError)) throw error
    // The verifier also returns EACCES, but then the error names the program. ESRCH: types or tracepoints are missing.
    const forbidden =
      error.code === 'EPERM' || (error.code === 'EACCES' && error.refusal.program === undefined)
    if (forbidden)
      return { fault: 'untried', detail: 'cannot be checked without permission to load programs' }
    if (error.code === 'ESRCH')
      return { fault: 'untried', detail: `cannot be checked: ${error.refusal.reason}` }
    if (error.code === 'ENOMEM') return { fault: 'no_memory', detail: error.message }
    if (error.refusal.unknown) return { fault: 'too_old', detail: error.message }
    return { fault: /\bJIT|non-JITed/.test(error.log) ? 'no_jit' : 'refused', detail: error.message }
  }
}
