import type { NvmlAnswer } from '../../../kernel/native.ts'

export interface Failure {
  readonly reason: string
  /** '' if there is nothing to fix. */
  readonly hint: string
}

const restart =
  'restart the host, or stop the programs that use the GPUs and reload the module: modprobe -r nvidia; modprobe nvidia'
const devices =
  'run svc as root; in a container, add the devices (docker run --gpus=all, NVIDIA_DRIVER_CAPABILITIES=utility)'
const kernelLog = 'dmesg has the cause (lines with NVRM and Xid); '

/** Hint for an `nvmlReturn_t`. */
const hints: Readonly<Record<number, string>> = {
  4: devices, // NO_PERMISSION
  8: 'connect the external power cables of the GPU', // INSUFFICIENT_POWER
  9: 'load the driver: modprobe nvidia; if that fails, dmesg has the cause', // DRIVER_NOT_LOADED
  11: `${kernelLog}restart the host`, // IRQ_ISSUE
  15: `${kernelLog}restart the host; if it happens again, check the power supply and the seating of the GPU`, // GPU_IS_LOST
  16: 'stop all programs that use the GPU, svc included, then run nvidia-smi --gpu-reset', // RESET_REQUIRED
  17: devices, // OPERATING_SYSTEM
  18: `the driver was updated but its old module is still loaded: ${restart}`, // LIB_RM_VERSION_MISMATCH
}
const anyHint = 'see nvidia-smi and dmesg (lines with NVRM and Xid)'

export function nvmlHint(status: number): string {
  return hints[status] ?? anyHint
}

/**
 * Reason why an answer is unusable. `driverIsLoaded`: whether the kernel has the driver, with or without the library.
 */
export function nvmlFailure(answer: NvmlAnswer, driverIsLoaded: () => boolean): Failure | undefined {
  const { failed, status, error, library } = answer
  switch (failed) {
    case '':
      return undefined
    case 'find':
      if (!driverIsLoaded()) return { reason: 'NVIDIA driver library libnvidia-ml.so.1 not found', hint: '' }
      return {
        reason: 'the NVIDIA driver is loaded, but its library libnvidia-ml.so.1 was not found',
        hint: 'install the driver utilities; in a container: docker run --gpus=all, NVIDIA_DRIVER_CAPABILITIES=utility',
      }
    case 'load':
      return {
        reason: `cannot load the NVIDIA driver library: ${error}`,
        hint: 'reinstall the library with the version and architecture of the driver',
      }
    case 'init':
      return { reason: `cannot initialise NVML (${library}): ${error}`, hint: nvmlHint(status) }
    case 'ask':
      return { reason: `cannot list the GPUs with NVML (${library}): ${error}`, hint: nvmlHint(status) }
  }
}
