import { svcTlsFunction } from '../../../kernel/gen/syscalls-tls.ts'
import { type TlsFunction, tlsFunctions } from './libraries.ts'

/** The programs of a back end that are attached to functions of libraries. */
export interface TlsPrograms {
  /** At the beginning of a function, by what it does. */
  readonly enter: Readonly<Record<TlsFunction, string>>
  /** At the return of each. */
  readonly leave: string
  /** They are told what the function does by the cookie of their attachment (Linux 5.15). */
  readonly hasCookies: boolean
}

/** Of bpf/include/tls.h: one program for all. */
export const oneForAll: TlsPrograms = {
  enter: byFunction(() => 'svc_tls_enter'),
  leave: 'svc_tls_return',
  hasCookies: true,
}

/** Of bpf/syscalls-tls.bpf.c: one for each function. */
export const oneForEach: TlsPrograms = {
  enter: byFunction(does => `svc_tls_${svcTlsFunction[tlsFunctions.indexOf(does)]}`),
  leave: 'svc_tls_return',
  hasCookies: false,
}

/** Each of them once, by name. */
export function namesOf({ enter, leave }: TlsPrograms): readonly string[] {
  return [...new Set([...Object.values(enter), leave])]
}

function byFunction(name: (does: TlsFunction) => string): Record<TlsFunction, string> {
  return Object.fromEntries(tlsFunctions.map(does => [does, name(does)])) as Record<TlsFunction, string>
}
