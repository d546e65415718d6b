import type { NvmlAnswer } from '../kernel/native.ts'

export interface Failure {
  readonly reason: string
  /** '': nothing has to be fixed. */
  readonly hint: string
}

const restart =
  'restart the host, or end what uses the GPUs and load the module anew: modprobe -r nvidia; modprobe nvidia'
const devices =
  'run the agent as root; in a container, give it the devices (docker run --gpus=all, NVIDIA_DRIVER_CAPABILITIES=utility)'
const kernelLog = 'dmesg says why (lines with NVRM and Xid); '

/** Hint for an `nvmlReturn_t`. */
const hints: Readonly<Record<number, string>> = {
  4: devices, // NO_PERMISSION
  8: 'connect the external power cables of the GPU', // INSUFFICIENT_POWER
  9: 'load the driver: modprobe nvidia; dmesg says why it is not loaded', // DRIVER_NOT_LOADED
  11: `${kernelLog}restart the host`, // IRQ_ISSUE
  15: `${kernelLog}restart the host; if it comes back, look after the power and seat of the GPU`, // GPU_IS_LOST
  16: 'end what uses the GPU, this agent, too, then: nvidia-smi --gpu-reset', // RESET_REQUIRED
  17: devices, // OPERATING_SYSTEM
  18: `the driver was updated while its old module is loaded: ${restart}`, // LIB_RM_VERSION_MISMATCH
}
const anyHint = 'nvidia-smi and dmesg (lines with NVRM and Xid) say more'

export function nvmlHint(status: number): string {
  return hints[status] ?? anyHint
}

/** Why there is no answer of use. `driverIsLoaded`: the kernel has the driver, whether or not the library is there. */
export function nvmlFailure(answer: NvmlAnswer, driverIsLoaded: () => boolean): Failure | undefined {
  const { failed, status, error, library } = answer
  switch (failed) {
    case '':
      return undefined
    case 'find':
      if (!driverIsLoaded()) return { reason: 'no NVIDIA driver library (libnvidia-ml.so.1)', hint: '' }
      return {
        reason: 'the NVIDIA driver is loaded, but its library libnvidia-ml.so.1 is not here',
        hint: 'install the utilities of the driver; in a container: docker run --gpus=all, NVIDIA_DRIVER_CAPABILITIES=utility',
      }
    case 'load':
      return {
        reason: `cannot load the NVIDIA driver library: ${error}`,
        hint: 'install the library anew, in the version and for the architecture of the driver',
      }
    case 'init':
      return { reason: `cannot initialise NVML (${library}): ${error}`, hint: nvmlHint(status) }
    case 'ask':
      return { reason: `NVML (${library}) does not tell its GPUs: ${error}`, hint: nvmlHint(status) }
  }
}
