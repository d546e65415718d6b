import { textOfFile } from '../foundation/lib/optional-files.ts'

/** Linux capabilities that svc uses, with their numbers (include/uapi/linux/capability.h). */
const numbers = {
  DAC_OVERRIDE: 1,
  DAC_READ_SEARCH: 2,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  SYSLOG: 34,
  PERFMON: 38,
  BPF: 39,
  CHECKPOINT_RESTORE: 40,
} as const
export type Capability = keyof typeof numbers

/** The capabilities in a hexadecimal mask of /proc/PID/status. */
export function capabilitiesOf(mask: string): ReadonlySet<Capability> {
  const bits = BigInt(`0x${mask}`)
  const names = Object.keys(numbers) as Capability[]
  return new Set(names.filter(name => (bits >> BigInt(numbers[name])) & 1n))
}

/** This process's effective capabilities in its user namespace; undefined if `proc` does not show them. */
export function heldCapabilities(proc = '/proc'): ReadonlySet<Capability> | undefined {
  const mask = /^CapEff:\s*([0-9a-f]{1,16})$/m.exec(textOfFile(`${proc}/self/status`))?.[1]
  return mask === undefined ? undefined : capabilitiesOf(mask)
}

/** True if the kernel has CAP_BPF and CAP_PERFMON: since Linux 5.8. Older ones require CAP_SYS_ADMIN. */
export function kernelKnowsBpf(proc = '/proc'): boolean {
  const last = textOfFile(`${proc}/sys/kernel/cap_last_cap`)
  return last === '' || Number(last) >= numbers.BPF
}
