import { textOfFile } from '../foundation/lib/optional-files.ts'
import { type Capability, heldCapabilities, kernelKnowsBpf } from './capabilities.ts'
import { capabilityHints, type Fault } from './need.ts'

/** Why the kernel does not let this process load programs, one fault per hint. */
export const refusals = {
  capabilities: {
    state: 'missing',
    what: 'svc lacks the capabilities. `kernel.unprivileged_bpf_disabled` does not matter: tracing programs need them whatever its value',
    hints: capabilityHints('BPF', 'PERFMON'),
  },
  old_capabilities: {
    state: 'missing',
    what: 'svc lacks the capability; kernels before 5.8 do not have CAP_BPF and CAP_PERFMON',
    hints: capabilityHints('SYS_ADMIN'),
  },
  user_namespace: {
    state: 'missing',
    what: 'svc runs in a user namespace (a rootless container), whose capabilities are not valid for eBPF',
    hints: {
      any: 'run in the host’s user namespace',
      systemd: 'PrivateUsers=no',
      container: 'sudo docker run --userns=host',
      kubernetes: 'hostUsers: true',
    },
  },
  seccomp: {
    state: 'missing',
    what: 'svc has the capabilities, but a seccomp filter denies the system call bpf',
    hints: {
      any: 'allow the system call bpf in the seccomp filter of svc',
      systemd: 'SystemCallFilter=@system-service bpf',
      container: 'docker run --security-opt seccomp=unconfined',
      kubernetes: 'securityContext: {seccompProfile: {type: Unconfined}}',
    },
  },
  security_module: {
    state: 'missing',
    what: 'svc has the capabilities and no seccomp filter, but a security module (SELinux, AppArmor, BPF LSM) denies access',
    hints: {
      any: 'ausearch -m avc -c svc | audit2allow -M svc && semodule -i svc.pp',
      container: 'docker run --security-opt label=disable --security-opt apparmor=unconfined',
      kubernetes: 'securityContext: {seLinuxOptions: {type: spc_t}, appArmorProfile: {type: Unconfined}}',
    },
  },
  no_system_call: {
    state: 'missing',
    what: 'the system call bpf is not available: the kernel was built without it, or a sandbox (gVisor) or a seccomp filter hides it',
    hints: {
      container: 'docker run --runtime=runc --security-opt seccomp=unconfined',
      kubernetes:
        'securityContext: {seccompProfile: {type: Unconfined}}, and a runtimeClassName without a sandbox',
      kernel: 'run a kernel built with CONFIG_BPF_SYSCALL=y',
    },
  },
  refused: {
    state: 'missing',
    what: 'the kernel rejects a two-instruction program for another reason',
    hints: { any: 'check dmesg | tail, and report it with the output of svc doctor --json' },
  },
} as const satisfies Record<string, Fault>

export type Refusal = keyof typeof refusals

/** Explains why bpf(2) failed with `code` (`EPERM`), from this process's state in `proc`. */
export function refusalOf(
  code: string,
  proc = '/proc',
): { readonly fault: Refusal; readonly detail: string } {
  const status = textOfFile(`${proc}/self/status`)
  const filtered = /^Seccomp:\s*2/m.test(status)
  if (code === 'ENOSYS')
    return {
      fault: 'no_system_call',
      detail: `the system call bpf is not available${filtered ? '; a seccomp filter is on' : ''}`,
    }
  if (code === 'EACCES') return { fault: 'security_module', detail: `not permitted by ${modules()}` }
  if (code !== 'EPERM')
    return { fault: 'refused', detail: `the kernel rejected a two-instruction program: ${code}` }
  if (inUserNamespace(textOfFile(`${proc}/self/uid_map`)))
    return { fault: 'user_namespace', detail: 'not permitted: svc runs in a user namespace' }
  const known = kernelKnowsBpf(proc)
  const absent = missingCapabilities(heldCapabilities(proc), known)
  if (absent.length > 0)
    return {
      fault: known ? 'capabilities' : 'old_capabilities',
      detail: `not permitted: ${absent.map(name => `CAP_${name}`).join(' and ')} missing`,
    }
  if (filtered) return { fault: 'seccomp', detail: 'not permitted despite the capabilities: seccomp' }
  return { fault: 'security_module', detail: `not permitted despite the capabilities, by ${modules()}` }
}

/** The capabilities for tracing programs that are not in `held`. SYS_ADMIN implies them. */
function missingCapabilities(held: ReadonlySet<Capability> | undefined, known: boolean): Capability[] {
  if (held === undefined || held.has('SYS_ADMIN')) return []
  if (!known) return ['SYS_ADMIN']
  return (['BPF', 'PERFMON'] as const).filter(name => !held.has(name))
}

/** The initial user namespace maps every id to itself (user_namespaces(7)). */
function inUserNamespace(map: string): boolean {
  return map !== '' && !/^\s*0\s+0\s+4294967295\s*$/.test(map)
}

/** The active security modules, if securityfs is mounted. */
function modules(): string {
  const names = textOfFile('/sys/kernel/security/lsm').trim()
  return names === '' ? 'a security module' : `a security module (${names})`
}
