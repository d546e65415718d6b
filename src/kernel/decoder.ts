// What only libraries in C can read (names of C++ functions, what xz compressed), read by a program without any rights:
// native/decode/decode.h has the protocol. Who asks waits, so that nothing of the agent's own thread may.

import { closeSync, readSync, writeSync } from 'node:fs'
import { BoundedMap } from '../foundation/lib/bounded-map.ts'
import { errorText } from '../foundation/lib/logger.ts'
import { retryInterrupted } from '../foundation/lib/retry-interrupted.ts'
import { counted } from '../foundation/lib/small-tables.ts'
import { utf8Text } from '../foundation/lib/utf8-text.ts'
import { findAsset } from './assets.ts'
import { type AnsweringChild, type Child, startAnswering, startChild } from './child.ts'
import { type ChannelHandle, loadNative, type Native, Unsupported } from './native.ts'

/** Whose bytes these are: who makes the program fail again and again is not served any more. */
export interface DecodeOrigin {
  readonly file: string
  /** Of files that have one owner. */
  readonly owner: string
}

export interface MangledName {
  readonly name: string
  readonly origin: DecodeOrigin
}

/** Names that stay as they are, by why. */
export interface Undecoded {
  /** The program did not survive them, or took too long. */
  failed: number
  /** Their file, or its owner, had too many of these. */
  refused: number
  /** Others took all the time. */
  late: number
  /** The program does not run. */
  unavailable: number
}

/** Why something was not unpacked. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

export interface DecoderOptions {
  /** Undefined: it was not built. Left out: it is where it belongs. */
  readonly program?: string | undefined
}

const ask = { names: 1, unpack: 2, more: 3 } as const
const answers = { name: 1, bytes: 2, goOn: 3, end: 4 } as const
const headBytes = 8
/** MAX_PAYLOAD, MAX_MANGLED and MAX_DEMANGLED of native/decode/decode.h. */
const mostPayload = 64 * 1024
const mostMangled = 4096
const mostDemangled = 4096

/** For one answer. A name has 50 ms of a processor there, and shares it with all that runs on the host. */
const patienceMs = 2_000
/** For all that is asked at once. */
const mostMs = 5_000
const idleMs = 60_000
/** How often a file, and an owner, may make the program end. */
const mostOfFile = 3
const mostOfOwner = 16
const mostOrigins = 4_096
const firstWaitMs = 1_000
const longestWaitMs = 60_000
/** What every program that works knows. */
const known = { mangled: '_Z1av', name: 'a()' }

/** The program, by its end of the channel. Every method throws where it does not answer as it should. */
class Running {
  usedMs = performance.now()
  readonly #child: AnsweringChild
  readonly #native: Native
  readonly #channel: ChannelHandle
  readonly #fd: number
  readonly #buffer = Buffer.allocUnsafe(mostPayload + headBytes)
  #start = 0
  #end = 0

  constructor(program: string, native: Native) {
    this.#native = native
    this.#channel = native.channelOpen(patienceMs)
    const { near, far } = native.channelEnds(this.#channel)
    this.#fd = near
    try {
      this.#child = startAnswering(program, far)
    } catch (error) {
      native.channelClose(this.#channel)
      throw error
    }
    native.channelBelongs(this.#channel, this.#child.pid!)
    // By then the runtime has reaped it, and the number may become another's.
    this.#child.on('exit', () => native.channelBelongs(this.#channel, 0))
  }

  close(): void {
    this.#child.kill('SIGKILL')
    this.#native.channelClose(this.#channel)
  }

  send(kind: number, ...parts: readonly Uint8Array[]): void {
    this.usedMs = performance.now()
    const head = Buffer.allocUnsafe(headBytes)
    head.writeUInt32LE(kind, 0)
    head.writeUInt32LE(
      parts.reduce((sum, { length }) => sum + length, 0),
      4,
    )
    for (const part of [head, ...parts])
      for (let at = 0; at < part.length; )
        at += retryInterrupted(() => writeSync(this.#fd, part, at, part.length - at))
  }

  /** The payload is valid until the next call. */
  receive(): { kind: number; payload: Buffer } {
    const head = this.#take(headBytes)
    const kind = head.readUInt32LE(0)
    const length = head.readUInt32LE(4)
    if (length > mostPayload) throw new DecodeError('unexpected output')
    return { kind, payload: this.#take(length) }
  }

  #take(length: number): Buffer {
    if (this.#end - this.#start < length) {
      this.#buffer.copyWithin(0, this.#start, this.#end)
      this.#end -= this.#start
      this.#start = 0
      while (this.#end < length) {
        const got = retryInterrupted(() =>
          readSync(this.#fd, this.#buffer, this.#end, this.#buffer.length - this.#end, null),
        )
        if (got === 0) throw new DecodeError('it ended')
        this.#end += got
      }
    }
    this.#start += length
    return this.#buffer.subarray(this.#start - length, this.#start)
  }
}

/** Starts the program when it is first needed, and again when it ended. One that does not run at all is tried again later. */
export class Decoder {
  readonly undecoded: Undecoded = { failed: 0, refused: 0, late: 0, unavailable: 0 }
  /** How often it was started. */
  starts = 0
  /** Why it does not run; '' where nothing is wrong. */
  fault = ''
  readonly #program: string | undefined
  readonly #failures = counted(new BoundedMap<string, number>(mostOrigins))
  #running: Running | undefined
  #waitMs = firstWaitMs
  #nextMs = Number.NEGATIVE_INFINITY

  constructor(options: DecoderOptions = {}) {
    this.#program = 'program' in options ? options.program : findAsset('svc-decode')
  }

  /**
   * Mangled names of C++ functions (`_Z…`) as people write them, with their parameters; as they are where they are none,
   * have 4 KiB or more, would become longer than 4 KiB, or could not be read. Takes 10 seconds at most. Does not throw.
   */
  demangle(names: readonly MangledName[]): string[] {
    const written = names.map(({ name }) => name)
    const endMs = performance.now() + mostMs
    let batch: number[] = []
    let bytes = 0
    names.forEach(({ name }, index) => {
      const length = Buffer.byteLength(name) + 1
      if (length > mostMangled || name.includes('\0')) return
      if (bytes + length > mostPayload) {
        this.#demangleBatch(names, batch, written, endMs)
        batch = []
        bytes = 0
      }
      batch.push(index)
      bytes += length
    })
    this.#demangleBatch(names, batch, written, endMs)
    return written
  }

  /**
   * Unpacks what xz compressed into a file in memory of at most `most` bytes and returns its descriptor, which the caller
   * closes. Takes 10 seconds at most. Throws `DecodeError`.
   */
  unpack(bytes: Uint8Array, most: number, origin: DecodeOrigin): number {
    if (this.#isRefused(origin)) throw new DecodeError('too many unreadable files of the same owner')
    const running = this.#started()
    if (running === undefined) throw new DecodeError(this.fault)
    const fd = nativeOrThrow().memoryFile()
    try {
      unpackInto(running, fd, bytes, most)
      return fd
    } catch (error) {
      closeSync(fd)
      if (error instanceof PackedError) throw error
      this.#fail(origin)
      throw new DecodeError(`cannot unpack xz data: ${errorText(error)}`, { cause: error })
    } finally {
      // What it unpacked with stays in its memory.
      this.close()
    }
  }

  /** Ends the program where it was not asked anything for a minute. */
  closeIdle(): void {
    if (this.#running !== undefined && performance.now() - this.#running.usedMs > idleMs) this.close()
  }

  /** Ends the program. It is started again when it is needed. */
  close(): void {
    this.#running?.close()
    this.#running = undefined
  }

  #demangleBatch(
    names: readonly MangledName[],
    batch: readonly number[],
    written: string[],
    endMs: number,
  ): void {
    const served = batch.filter(index => {
      const refused = this.#isRefused(names[index]!.origin)
      if (refused) this.undecoded.refused++
      return !refused
    })
    if (served.length === 0 || this.#exchange(names, served, written, endMs) || served.length === 1) return
    // One of them did it: which one says only itself. Each is asked for alone.
    for (const index of served) this.#demangleBatch(names, [index], written, endMs)
  }

  /** False: the program did not survive it. */
  #exchange(
    names: readonly MangledName[],
    batch: readonly number[],
    written: string[],
    endMs: number,
  ): boolean {
    if (performance.now() > endMs) {
      this.undecoded.late += batch.length
      return true
    }
    const running = this.#started()
    if (running === undefined) {
      this.undecoded.unavailable += batch.length
      return true
    }
    try {
      running.send(ask.names, Buffer.from(batch.map(index => `${names[index]!.name}\0`).join('')))
      for (const index of batch) {
        const name = nameIn(running)
        if (name !== '') written[index] = name
      }
      return true
    } catch {
      this.close()
      if (batch.length === 1) {
        this.undecoded.failed++
        this.#fail(names[batch[0]!]!.origin)
      }
      return false
    }
  }

  #started(): Running | undefined {
    if (this.#running !== undefined) return this.#running
    if (performance.now() < this.#nextMs) return undefined
    let running: Running | undefined
    try {
      if (this.#program === undefined) throw new DecodeError('svc-decode is not installed next to the agent')
      this.starts++
      running = new Running(this.#program, nativeOrThrow())
      running.send(ask.names, Buffer.from(`${known.mangled}\0`))
      if (nameIn(running) !== known.name) throw new DecodeError('unexpected output')
      this.#running = running
      this.#waitMs = firstWaitMs
      this.fault = ''
    } catch (error) {
      running?.close()
      this.fault = `svc-decode cannot run: ${errorText(error)}`
      this.#nextMs = performance.now() + this.#waitMs
      this.#waitMs = Math.min(this.#waitMs * 2, longestWaitMs)
    }
    return this.#running
  }

  #isRefused({ file, owner }: DecodeOrigin): boolean {
    const failures = (key: string) => this.#failures.get(key) ?? 0
    return failures(`file ${file}`) >= mostOfFile || failures(`owner ${owner}`) >= mostOfOwner
  }

  #fail({ file, owner }: DecodeOrigin): void {
    for (const key of [`file ${file}`, `owner ${owner}`])
      this.#failures.set(key, (this.#failures.get(key) ?? 0) + 1)
  }
}

/** It is not xz's, broken, or larger than it may be: a fault of the file alone. */
class PackedError extends DecodeError {}

const packedReasons = ['', 'not valid xz data', 'the data is too large', 'it needs too much memory']

function unpackInto(running: Running, fd: number, bytes: Uint8Array, most: number): void {
  const endMs = performance.now() + mostMs
  const limit = Buffer.allocUnsafe(4)
  limit.writeUInt32LE(most, 0)
  const step = mostPayload - limit.length
  let unpacked = 0
  for (let at = 0; ; at += step) {
    // Behind the last of it stands nothing, which says that it was the last.
    const piece = bytes.subarray(at, at + step)
    if (at === 0) running.send(ask.unpack, limit, piece)
    else running.send(ask.more, piece)
    for (;;) {
      if (performance.now() > endMs) throw new DecodeError('it took too long')
      const { kind, payload } = running.receive()
      if (kind === answers.end) return
      if (kind === answers.goOn) break
      if (kind !== answers.bytes) {
        const why = packedReasons[payload.length === 4 ? payload.readUInt32LE(0) : 0]
        throw new PackedError(`cannot unpack xz data: ${why ?? ''}`)
      }
      unpacked += payload.length
      if (unpacked > most) throw new DecodeError('too much output')
      for (let from = 0; from < payload.length; ) from += writeSync(fd, payload, from, payload.length - from)
    }
    if (piece.length === 0) throw new DecodeError('unexpected output')
  }
}

function nameIn(running: Running): string {
  const { kind, payload } = running.receive()
  if (kind !== answers.name || payload.length > mostDemangled) throw new DecodeError('unexpected output')
  return utf8Text(payload, 0, payload.length)
}

function nativeOrThrow(): Native {
  const native = loadNative()
  if (native instanceof Unsupported) throw new DecodeError(native.reason)
  return native
}

/** Why the program does not run on this host; '' where it does. Starts it, and waits for nothing. */
export async function tryDecoder(program = findAsset('svc-decode')): Promise<string> {
  if (program === undefined) return 'svc-decode is not installed next to the agent'
  let child: Child
  try {
    child = startChild(program)
  } catch (error) {
    return errorText(error)
  }
  let timer: NodeJS.Timeout | undefined
  const why = await new Promise<string>(resolve => {
    const want = frame(answers.name, known.name)
    let have = Buffer.alloc(0)
    timer = setTimeout(() => resolve('no answer'), patienceMs)
    child.on('error', error => resolve(errorText(error)))
    child.on('exit', (code, signal) =>
      resolve(code === 3 ? unconfined : `it ended: ${signal ?? `status ${code}`}`),
    )
    child.stdin.on('error', () => undefined)
    child.stdout.on('data', (bytes: Buffer) => {
      have = Buffer.concat([have, bytes.subarray(0, want.length)])
      if (have.length >= want.length) resolve(have.equals(want) ? '' : 'unexpected output')
    })
    child.stdin.write(frame(ask.names, `${known.mangled}\0`))
  })
  clearTimeout(timer)
  child.kill('SIGKILL')
  return why
}

const unconfined = 'it cannot drop its privileges: the kernel or a seccomp filter forbids it'

function frame(kind: number, text: string): Buffer {
  const bytes = Buffer.alloc(headBytes + text.length)
  bytes.writeUInt32LE(kind, 0)
  bytes.writeUInt32LE(text.length, 4)
  bytes.write(text, headBytes, 'latin1')
  return bytes
}
