import { readFileSync } from 'node:fs'
import { namesIn } from '../../foundation/lib/directory-names.ts'
import { svcSyscallCall, svcSyscallCallKind } from '../../kernel/gen/syscalls.ts'

type Kind = (typeof svcSyscallCallKind)[number]

/** Calls in which threads wait for others, by the kernel's numbers of them (asm/unistd.h). */
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
/** Those of the table whose third argument is a pointer to a length and the fourth the flags. */
const withFlags = [43, 288, 202, 242]
const plainAccept = [43, 202]

/** Of one process. */
const maxThreads = 16_384

/** A call that a thread waits in, as the kernel side remembers it (`svc_syscall_call`). */
export interface BlockedCall {
  readonly tid: number
  readonly bytes: Buffer
}

/**
 * The calls that began before anybody watched: those that the threads of a process wait in, from /proc; undefined for each
 * thread that waits in none of them.
 */
export function* blockedCalls(pid: number, proc = '/proc'): Generator<BlockedCall | undefined, void> {
  for (const tid of namesIn(`${proc}/${pid}/task`, maxThreads)) {
    let bytes: Buffer | undefined
    try {
      bytes = parseSyscall(readFileSync(`${proc}/${pid}/task/${tid}/syscall`, 'latin1'))
    } catch {
      // The thread is gone, or its calls may not be seen: its first message will be missed.
    }
    yield bytes && { tid: Number(tid), bytes }
  }
}

/** Reads `0 0x5 0x7ffe4a0 0x400 0x0 0x0 0x0 <sp> <pc>` (proc(5)); undefined for other calls, and for `running`. */
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
