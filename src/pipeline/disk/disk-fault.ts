import { errorCode } from '../../foundation/lib/error-code.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { LockedByAnother } from './disk-lock.ts'

/** Drop reason while the disk does not accept data, as in metrics. */
export type FaultReason = 'disk_full' | 'disk_read_only' | 'disk_error'

/** Fault of the disk queue. */
export interface DiskFault {
  readonly reason: FaultReason
  /** Description of the fault. */
  readonly words: string
  readonly hint: string
}

const hints: Readonly<Record<string, (directory: string) => readonly [reason: FaultReason, hint: string]>> = {
  ENOSPC: directory => ['disk_full', `free space or inodes on the file system of ${directory} (df, df -i)`],
  EDQUOT: directory => [
    'disk_full',
    `raise the disk quota of the svc user on the file system of ${directory}`,
  ],
  EROFS: directory => [
    'disk_read_only',
    `remount the file system of ${directory} writable; the kernel log (dmesg) has the cause`,
  ],
  EIO: directory => ['disk_error', `look for device errors of ${directory} in the kernel log (dmesg)`],
  EFBIG: () => ['disk_error', 'raise the file size limit (LimitFSIZE= of the service, ulimit -f)'],
  ENOENT: directory => ['disk_error', `allow svc to create ${directory}, or restart svc`],
  EACCES: directory => ['disk_error', `give the svc user read and write access to ${directory}`],
  EPERM: directory => ['disk_error', `give the svc user read and write access to ${directory}`],
  EMFILE: () => ['disk_error', 'raise the open file limit (LimitNOFILE= of the service, ulimit -n)'],
}

/** Fault for an error of a file operation of the queue in a directory. */
export function faultOf(error: unknown, directory: string): DiskFault {
  const code = errorCode(error)
  if (error instanceof LockedByAnother)
    return { reason: 'disk_error', words: error.message, hint: 'then restart svc' }
  const [reason, hint] = hints[code]?.(directory) ?? ['disk_error', `check ${directory}`]
  return { reason, words: errorText(error), hint }
}
