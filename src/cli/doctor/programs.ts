import { findAsset } from '../../kernel/assets.ts'
import { LoadError } from '../../kernel/bpf-object.ts'
import { loadNative, type Native, Unsupported } from '../../kernel/native.ts'
import type { Fault, Finding, Topic } from '../../kernel/need.ts'

export type ProgramFault = 'no_jit' | 'no_memory' | 'too_old' | 'refused' | 'absent' | 'untried'

/** Why the kernel does not take an object of programs. `topic`: which group tries them. */
export function programFaults(topic: Topic): Readonly<Record<ProgramFault, Fault>> {
  return {
    no_jit: {
      state: 'missing',
      what: 'the kernel’s compiler for eBPF is off, and its interpreter does not know what the programs use',
      hints: { sysctl: 'sysctl -w net.core.bpf_jit_enable=1' },
    },
    no_memory: {
      state: 'missing',
      what: 'there is no memory for the maps: the cgroup’s limit, or the host’s memory, is used up',
      hints: {
        // Twice of what the unit, the container and the chart have.
        systemd: 'MemoryMax=1G',
        container: 'docker run --memory=1g',
        kubernetes: 'resources: {limits: {memory: 1Gi}}',
        ...(topic === 'traces' && { config: 'agent.ebpf.ringbuf_size: 512Ki' }),
      },
    },
    too_old: {
      state: 'missing',
      what: 'the kernel does not know an instruction, a helper, a type or a kind of map that the programs are made of; the detail says which',
      hints: { kernel: 'run Linux 5.10 or newer; from 6.3 on it has all that svc uses' },
    },
    refused: {
      state: 'missing',
      what: 'the kernel’s verifier refuses a program',
      hints: {
        any: 'agent.ebpf.debug: true logs what the verifier said: report it with the kernel’s version',
        kernel: 'run another kernel of 6.3 or newer',
      },
    },
    absent: {
      state: 'missing',
      what: 'the compiled programs are not where the package has them',
      hints: { package: 'install the package of svc anew; in a source tree: bash tools/setup' },
    },
    untried: {
      state: 'unknown',
      what: 'it cannot be tried while svc may not load programs, or without the native addon, BTF or the tracepoints',
      hints: { any: `fix what svc doctor traces calls missing, then run svc doctor ${topic} again` },
    },
  }
}

/** What `load` finds, which loads the programs of a built file and lets go of them; or why the kernel refused. */
export function tryPrograms<F extends string>(
  file: string,
  load: (native: Native, path: string) => Finding<F>,
): Finding<F | ProgramFault> {
  const native = loadNative()
  if (native instanceof Unsupported)
    return { fault: 'untried', detail: 'cannot be tried without the native addon' }
  const path = findAsset(file)
  if (path === undefined) return { fault: 'absent', detail: `cannot find the BPF object ${file}` }
  try {
    return load(native, path)
  } catch (error) {
    if (!(error instanceof LoadError)) throw error
    // The verifier, too, says EACCES; then it names the program. ESRCH: types or tracepoints are not there.
    const forbidden =
      error.code === 'EPERM' || (error.code === 'EACCES' && error.refusal.program === undefined)
    if (forbidden) return { fault: 'untried', detail: 'cannot be tried without the right to load programs' }
    if (error.code === 'ESRCH')
      return { fault: 'untried', detail: `cannot be tried: ${error.refusal.reason}` }
    if (error.code === 'ENOMEM') return { fault: 'no_memory', detail: error.message }
    if (error.refusal.unknown) return { fault: 'too_old', detail: error.message }
    return { fault: /\bJIT|non-JITed/.test(error.log) ? 'no_jit' : 'refused', detail: error.message }
  }
}
