// What stands in the place of a name that is not known: why not, in brackets, for whoever reads the profile.

import { basename } from 'node:path'

/** A file that says nothing of where its functions begin, or only of those that others may call. */
export function strippedReason(path: string): string {
  return bracketed(`${fileName(path)}: stripped`)
}

/** A file that has symbols, and none of them for this place. */
export function uncoveredReason(path: string): string {
  return bracketed(`${fileName(path)}: no function here`)
}

/** A stub of the dynamic linker. */
export function linkageReason(path: string): string {
  return bracketed(`${fileName(path)}: procedure linkage table`)
}

/** A file whose symbols cannot be read; `why` is the end of a sentence about it. */
export function unreadableReason(path: string, why: string): string {
  return bracketed(`${fileName(path)}: ${why}`)
}

export const reasons = {
  /** Memory that holds no file, and whose process has no runtime that makes code, as far as is known. */
  anonymousMemory: '[anonymous memory]',
  /** Code that a runtime made, without a name for it. */
  justInTime: '[just-in-time code]',
  /** Code of the kernel in user space whose symbols cannot be read. */
  vdso: '[vdso]',
  /** System calls of programs from before the vDSO. */
  vsyscall: '[vsyscall]',
  /** The process ended before its memory was looked at. */
  processEnded: '[process ended before it was read]',
  /** Names take memory, of which each user has a share. */
  tooManyNames: '[name omitted: this user has more names than its share]',
  /** An address that no mapping of the process has. */
  noMapping: '[no mapping]',
  /** An address of the kernel that none of its symbols covers. */
  kernelUnknown: '[kernel: no function here]',
  kernelHidden: '[kernel: addresses are hidden by kptr_restrict]',
} as const

/** The kernel's symbols cannot be read; `why` is the end of a sentence about them. */
export function kernelReason(why: string): string {
  return bracketed(`kernel: ${why}`)
}

/** Is it a reason rather than a name? */
export function isReason(name: string): boolean {
  return name.startsWith('[') && name.endsWith(']')
}

/** Files of containers and of strangers have any name. */
function fileName(path: string): string {
  const name = basename(path.replace(/ \(deleted\)$/, ''))
  return name === '' ? 'unnamed file' : name.slice(0, 128)
}

function bracketed(text: string): string {
  return `[${text.replace(/[\0-\x1f\x7f]/g, '?')}]`
}
