// Decodes formats that only C libraries support (C++ names, xz), in a program without privileges: see
// native/decode/decode.h for the protocol. Calls block, so do not use it on the agent's main thread.

import { closeSync, readSync, writeSync } from 'node:fs'
import { BoundedMap } from '../foundation/lib/bounded-map.ts'
import { errorText } from '../foundation/lib/logger.ts'
import { retryInterrupted } from '../foundation/lib/retry-interrupted.ts'
import { counted } from '../foundation/lib/small-tables.ts'
import { utf8Text } from '../foundation/lib/utf8-text.ts'
import { findAsset } from './assets.ts'
import { type AnsweringChild, type Child, startAnswering, startChild } from './child.ts'
import { type ChannelHandle, loadNative, type Native, Unsupported } from './native.ts'

/** Origin of the bytes: one that repeatedly crashes the program is no longer served. */
export interface DecodeOrigin {
  readonly file: string
  /** Shared by files of one owner. */
  readonly owner: string
}

export interface MangledName {
  readonly name: string
  readonly origin: DecodeOrigin
}

/** Names that were not decoded, by reason. */
export interface Undecoded {
  /** The program crashed, or took too long. */
  failed: number
  /** Their file, or its owner, had too many failures. */
  refused: number
  /** Others used up the time. */
  late: number
  /** The program does not run. */
  unavailable: number
}

/** Why unpacking failed. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

export interface DecoderOptions {
  /** Undefined: it was not built. Omitted: the default location. */
  readonly program?: string | undefined
}

const ask = { names: 1, unpack: 2, more: 3 } as const
const answers = { name: 1, bytes: 2, goOn: 3, end: 4 } as const
const headBytes = 8
/** MAX_PAYLOAD, MAX_MANGLED and MAX_DEMANGLED of native/decode/decode.h. */
const mostPayload = 64 * 1024
const mostMangled = 4096
const mostDemangled = 4096

/** For one answer. A name gets 50 ms of CPU time there, but shares the CPU with the whole host. */
const patienceMs = 2_000
/** For one call. */
const mostMs = 5_000
const idleMs = 60_000
/** How often one file, and one owner, may crash the program. */
const mostOfFile = 3
const mostOfOwner = 16
const mostOrigins = 4_096
const firstWaitMs = 1_000
const longestWaitMs = 60_000
/** A self-test that every working program passes. */
const known = { mangled: '_Z1av', name: 'a()' }

/** The running program, by our end of the channel. Every method throws if it does not answer correctly. */
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
    // After the runtime has reaped it, the pid may be reused.
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

/** Starts the program on demand, and again after it ended. If it does not run at all, retries later. */
export class Decoder {
  readonly undecoded: Undecoded = { failed: 0, refused: 0, late: 0, unavailable: 0 }
  /** Number of starts. */
  starts = 0
  /** Why it does not run; '' if nothing is wrong. */
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
   * Demangles C++ names (`_Z…`), with parameters. Returns a name unchanged if it is not mangled, has 4 KiB or more,
   * would become longer than 4 KiB, or could not be decoded. Takes 10 seconds at most. Does not throw.
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
   * Unpacks xz data into a memory file of at most `most` bytes and returns its descriptor, which the caller closes.
   * Takes 10 seconds at most. Throws `DecodeError`.
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
      // Its working memory stays allocated.
      this.close()
    }
  }

  /** Stops the program after a minute without requests. */
  closeIdle(): void {
    if (this.#running !== undefined && performance.now() - this.#running.usedMs > idleMs) this.close()
  }

  /** Stops the program. It is restarted on demand. */
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
    // One of them caused it: retry each alone to find which.
    for (const index of served) this.#demangleBatch(names, [index], written, endMs)
  }

  /** False: the program crashed on it. */
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

/** Not xz, damaged, or above the limit: a fault of the file alone. */
class PackedError extends DecodeError {}

const packedReasons = ['', 'not valid xz data', 'the data is too large', 'it needs too much memory']

function unpackInto(running: Running, fd: number, bytes: Uint8Array, most: number): void {
  const endMs = performance.now() + mostMs
  const limit = Buffer.allocUnsafe(4)
  limit.writeUInt32LE(most, 0)
  const step = mostPayload - limit.length
  let unpacked = 0
  for (let at = 0; ; at += step) {
    // An empty piece marks the end.
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

/** Why the program does not run on this host; '' if it does. Starts it, without waiting. */
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
