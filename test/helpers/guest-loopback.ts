import { createSocket } from 'node:dgram'
import { loadNative, type Native, Unsupported } from '../../src/kernel/native.ts'

/** Of the machine that this runs in. Throws where there is none. */
export function guestNative(): Native {
  const native = loadNative()
  if (native instanceof Unsupported) throw new Error(native.reason)
  return native
}

/** Brings up loopback: SIOCSIFFLAGS with IFF_UP and IFF_RUNNING (netdevice(7)). */
export async function startLoopback(native: Native): Promise<void> {
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, resolve))
  const request = Buffer.alloc(40)
  request.write('lo')
  request.writeInt16LE(0x1 | 0x40, 16)
  const { _handle } = socket as unknown as { _handle: { fd: number } }
  native.ioctl(_handle.fd, 0x8914, request)
  socket.close()
}
