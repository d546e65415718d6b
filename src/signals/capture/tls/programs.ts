import { svcTlsFunction } from '../../../kernel/gen/syscalls-tls.ts'
import { type TlsFunction, tlsFunctions } from './libraries.ts'

/** Programs of a back end that are attached to library functions. */
export interface TlsPrograms {
  /** At the start of a function, by its purpose. */
  readonly enter: Readonly<Record<TlsFunction, string>>
  /** At the return of each. */
  readonly leave: string
  /** The cookie of the attachment identifies the function's purpose (Linux 5.15). */
  readonly hasCookies: boolean
}

/** For bpf/include/tls.h: one program for all. */
export const oneForAll: TlsPrograms = {
  enter: byFunction(() => 'svc_tls_enter'),
  leave: 'svc_tls_return',
  hasCookies: true,
}

/** For bpf/syscalls-tls.bpf.c: one per purpose. */
export const oneForEach: TlsPrograms = {
  enter: byFunction(does => `svc_tls_${svcTlsFunction[tlsFunctions.indexOf(does)]}`),
  leave: 'svc_tls_return',
  hasCookies: false,
}

/** Distinct program names. */
export function namesOf({ enter, leave }: TlsPrograms): readonly string[] {
  return [...new Set([...Object.values(enter), leave])]
}

function byFunction(name: (does: TlsFunction) => string): Record<TlsFunction, string> {
  return Object.fromEntries(tlsFunctions.map(does => [does, name(does)])) as Record<TlsFunction, string>
}
