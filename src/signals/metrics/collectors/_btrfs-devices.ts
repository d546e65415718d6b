// Devices of a mounted btrfs, by ioctl (include/uapi/linux/btrfs.h).

import { posix } from 'node:path'
import { u64 } from '../../../foundation/lib/u64.ts'
import { utf8Text } from '../../../foundation/lib/utf8-text.ts'

/** ioctl(2) on an open file of the file system; `argument` is input and output. Throws an error with `code`. */
export type Ioctl = (request: number, argument: Uint8Array) => void

export interface BtrfsDevice {
  /** Last component of its path. */
  readonly name: string
  readonly uuid: string
  readonly sizeBytes: number
  readonly unusedBytes: number
  /** Error counts in the order of `errorTypes`. */
  readonly errors: readonly number[]
}

export interface BtrfsDevices {
  /** UUID of the file system. */
  readonly uuid: string
  readonly devices: readonly BtrfsDevice[]
}

export const errorTypes = ['write', 'read', 'flush', 'corruption', 'generation'] as const

/** _IOR(0x94, 31, struct btrfs_ioctl_fs_info_args) and so on. */
export const requests = { fsInfo: 0x8400941f, devInfo: 0xd000941e, devStats: 0xc4089434 } as const

const fsInfoBytes = 1024
const devInfoBytes = 4096
const devStatsBytes = 1032
/** Maximum device number; numbers rise and are never reused. */
const mostNumbers = 4096

/** Reads all devices of a file system. Throws if the kernel refuses. */
export function readBtrfsDevices(ioctl: Ioctl): BtrfsDevices {
  const info = Buffer.alloc(fsInfoBytes)
  ioctl(requests.fsInfo, info)
  const highest = Math.min(u64(info, 0), mostNumbers)
  const count = u64(info, 8)
  const devices: BtrfsDevice[] = []
  for (let number = 0; number <= highest && devices.length < count; number++) {
    const device = readDevice(ioctl, number)
    if (device !== undefined) devices.push(device)
  }
  return { uuid: uuidOf(info, 16), devices }
}

/** Undefined if no device has this number. */
function readDevice(ioctl: Ioctl, number: number): BtrfsDevice | undefined {
  const info = Buffer.alloc(devInfoBytes)
  info.writeUInt32LE(number, 0)
  try {
    ioctl(requests.devInfo, info)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENODEV') return undefined
    throw error
  }
  const stats = Buffer.alloc(devStatsBytes)
  stats.writeUInt32LE(number, 0)
  stats.writeUInt32LE(errorTypes.length, 8)
  ioctl(requests.devStats, stats)
  const path = info.subarray(3072)
  const end = path.indexOf(0)
  const sizeBytes = u64(info, 32)
  return {
    name: posix.basename(utf8Text(path, 0, end < 0 ? path.length : end)),
    uuid: uuidOf(info, 8),
    sizeBytes,
    unusedBytes: sizeBytes - u64(info, 24),
    errors: errorTypes.map((_, i) => u64(stats, 24 + 8 * i)),
  }
}

function uuidOf(bytes: Buffer, at: number): string {
  const part = (from: number, to: number) => bytes.toString('hex', at + from, at + to)
  return [part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 16)].join('-')
}
