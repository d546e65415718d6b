import { loadPrograms, lockedMemory, syscallTracepointsAnyway } from '../../kernel/needs.ts'
import type { Backend } from './capture.ts'
import { SyscallCapture } from './syscall-capture.ts'

/** System call tracepoints (kernel 4.18 and later). All framing is in user space. */
export const syscalls: Backend = {
  name: 'syscalls',
  summary: 'System call tracepoints: two program runs per call that may be on a socket.',
  needs: [loadPrograms, lockedMemory, syscallTracepointsAnyway],
  objectFor: () => 'syscalls.bpf.o',
  open: (native, options, sink) => new SyscallCapture(native, { name: 'syscalls' }, options, sink),
}
