import { readFileSync } from 'node:fs'
import { namesIn } from '../../foundation/lib/directory-names.ts'
import { svcSyscallCall, svcSyscallCallKind } from '../../kernel/gen/syscalls.ts'

type Kind = (typeof svcSyscallCallKind)[number]

/** Blocking calls by system call number (asm/unistd.h). */
const waits: Readonly<Record<string, Readonly<Record<number, Kind>>>> = {
  x64: {
    0: 'buffer', // read
    19: 'vector', // readv
    43: 'accept',
    45: 'buffer', // recvfrom
    47: 'message', // recvmsg
    288: 'accept', // accept4
    299: 'messages', // recvmmsg
    327: 'vector', // preadv2
  },
  arm64: {
    63: 'buffer', // read
    65: 'vector', // readv
    202: 'accept',
    207: 'buffer', // recvfrom
    212: 'message', // recvmsg
    242: 'accept', // accept4
    243: 'messages', // recvmmsg
    286: 'vector', // preadv2
  },
}
/** Calls of the table whose third argument is a pointer to a length, and the fourth the flags. */
const withFlags = [43, 288, 202, 242]
const plainAccept = [43, 202]

/** Maximum threads of one process. */
const maxThreads = 16_384

/** A call in which a thread waits, in the kernel side's format (`svc_syscall_call`). */
export interface BlockedCall {
  readonly tid: number
  readonly bytes: Buffer
}

/**
 * Calls that began before the attachment and in which threads of a process wait, from /proc; undefined for each other
 * thread.
 */
export function* blockedCalls(pid: number, proc = '/proc'): Generator<BlockedCall | undefined, void> {
  for (const tid of namesIn(`${proc}/${pid}/task`, maxThreads)) {
    let bytes: Buffer | undefined
    try {
      bytes = parseSyscall(readFileSync(`${proc}/${pid}/task/${tid}/syscall`, 'latin1'))
    } catch {
      // The thread ended, or access to its calls is denied: its first message will be missed.
    }
    yield bytes && { tid: Number(tid), bytes }
  }
}

/** Parses `0 0x5 0x7ffe4a0 0x400 0x0 0x0 0x0 <sp> <pc>` (proc(5)); undefined for other calls, and for `running`. */
export function parseSyscall(text: string, arch: string = process.arch): Buffer | undefined {
  const [number, fd, address, third, fourth] = text.split(' ')
  const nr = Number(number)
  const kind = waits[arch]?.[nr]
  if (kind === undefined || fourth === undefined) return undefined
  const bytes = Buffer.alloc(svcSyscallCall.size)
  bytes.writeBigUInt64LE(BigInt(address!), svcSyscallCall.address)
  const count = withFlags.includes(nr) ? (plainAccept.includes(nr) ? 0n : BigInt(fourth)) : BigInt(third!)
  bytes.writeUInt32LE(Number(count & 0xffff_ffffn), svcSyscallCall.count)
  bytes.writeUInt32LE(Number(BigInt(fd!) & 0xffff_ffffn), svcSyscallCall.fd)
  bytes.writeInt32LE(nr, svcSyscallCall.nr)
  bytes[svcSyscallCall.kind] = svcSyscallCallKind.indexOf(kind)
  return bytes
}
