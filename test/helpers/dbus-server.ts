// The other end of D-Bus, as a test wants it: a real server at a Unix socket.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { messageSize, prefixBytes } from '../../src/foundation/lib/dbus-message.ts'
import {
  DBusReader,
  type DBusValue,
  type DBusVariant,
  DBusWriter,
} from '../../src/foundation/lib/dbus-value.ts'

export interface Asked {
  readonly serial: number
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly body: readonly DBusValue[]
}

/** A reply, an error, bytes as they are, or undefined for silence. */
export type Answer =
  | { readonly signature: string; readonly body: readonly DBusValue[] }
  | { readonly error: string; readonly text?: string }
  | Buffer
  | undefined

export interface DBusServer {
  readonly path: string
  /** Open now, and since the start. */
  connections(): { readonly open: number; readonly all: number }
  /** Of all connections, in their order. */
  readonly asked: Asked[]
}

export interface DBusServerOptions {
  answer(call: Asked, socket: Socket): Answer
  /** What is said to AUTH; undefined for silence. */
  readonly auth?: string | undefined
  readonly path?: string
}

/** Listens until the test ends. Hello is answered without asking. */
export async function dbusServer(t: TestContext, options: DBusServerOptions): Promise<DBusServer> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-dbus-'))
  const path = options.path ?? join(directory, 'bus')
  const sockets = new Set<Socket>()
  const asked: Asked[] = []
  let all = 0
  const server = createServer(socket => {
    all++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    serve(socket, options, asked)
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
    rmSync(directory, { recursive: true, force: true })
  })
  return { path, asked, connections: () => ({ open: sockets.size, all }) }
}

function serve(socket: Socket, options: DBusServerOptions, asked: Asked[]): void {
  const auth = 'auth' in options ? options.auth : 'OK 0123456789abcdef0123456789abcdef\r\n'
  let input = Buffer.alloc(0)
  let talks = false
  socket.on('data', chunk => {
    input = Buffer.concat([input, chunk])
    if (!talks) {
      const line = input.indexOf('\r\n')
      if (line < 0) return
      const text = input.toString('latin1', 0, line)
      input = input.subarray(line + 2)
      if (text.startsWith('\0AUTH EXTERNAL ') && auth !== undefined) socket.write(auth)
      talks = text === 'BEGIN'
    }
    while (talks && input.length >= prefixBytes && input.length >= messageSize(input)) {
      const call = readCall(input.subarray(0, messageSize(input)))
      input = input.subarray(messageSize(input))
      const isHello = call.member === 'Hello'
      if (!isHello) asked.push(call)
      const answer = isHello ? { signature: 's', body: [':1.1'] } : options.answer(call, socket)
      if (answer !== undefined)
        socket.write(Buffer.isBuffer(answer) ? answer : encodeAnswer(call.serial, answer))
    }
  })
}

function readCall(bytes: Buffer): Asked {
  const reader = new DBusReader(bytes, true)
  const header = reader.read('yyyyuua(yv)')
  reader.align(8)
  const fields = new Map(
    (header[6] as unknown as [number, DBusVariant][]).map(([field, { value }]) => [field, value as string]),
  )
  return {
    serial: header[5] as number,
    path: fields.get(1)!,
    interface: fields.get(2)!,
    member: fields.get(3)!,
    body: new DBusReader(bytes.subarray(reader.at), true).read(fields.get(8) ?? ''),
  }
}

export function encodeAnswer(serial: number, answer: Exclude<Answer, Buffer | undefined>): Buffer {
  const isError = 'error' in answer
  const signature = isError ? 's' : answer.signature
  const body = new DBusWriter()
  body.write(signature, isError ? [answer.text ?? ''] : answer.body)
  const fields: DBusValue[] = [[5, { signature: 'u', value: serial }]]
  if (isError) fields.push([4, { signature: 's', value: answer.error }])
  if (signature !== '') fields.push([8, { signature: 'g', value: signature }])
  const header = new DBusWriter()
  header.write('yyyyuua(yv)', [108, isError ? 3 : 2, 1, 1, body.bytes().length, 7, fields])
  header.align(8)
  return Buffer.concat([header.bytes(), body.bytes()])
}

const outerBus = process.env.DBUS_SYSTEM_BUS_ADDRESS

/** As `DBUS_SYSTEM_BUS_ADDRESS` for the rest of the test: a socket, or the system's own place where there is no path. */
export function useSystemBus(t: TestContext, path?: string): void {
  process.env.DBUS_SYSTEM_BUS_ADDRESS = path === undefined ? '' : `unix:path=${path}`
  t.after(() => {
    if (outerBus === undefined) delete process.env.DBUS_SYSTEM_BUS_ADDRESS
    else process.env.DBUS_SYSTEM_BUS_ADDRESS = outerBus
  })
}
