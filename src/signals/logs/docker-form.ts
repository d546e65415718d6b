import { streamAt } from './cri-form.ts'
import { type LineForm, type ReadLine, stderrStream, stdoutStream } from './line-form.ts'
import { rfc3339Us } from './timestamp.ts'

/**
 * `{"log":"text\n","stream":"stdout","attrs":{…},"time":"2026-01-01T00:00:00.123456789Z"}`: format of Docker's
 * json-file driver (moby, daemon/logger/jsonfilelog/jsonlog), read without `JSON.parse` if it has exactly this layout.
 * A text without a line feed at its end continues in the next line of its stream. The labels and variables in `attrs`
 * are ignored: they are known from the container itself.
 */
export const dockerForm: LineForm = (line, bytes, from, to) => {
  line.set(bytes, from, to)
  return readExact(line, bytes, from, to) || readAny(line, bytes, from, to)
}

const head = Buffer.from('{"log":"')
const streamField = Buffer.from(',"stream":"')
const attrsField = Buffer.from(',"attrs":{')
const timeField = Buffer.from(',"time":"')

/** Reads the exact layout. False, and nothing set, for any other. */
function readExact(line: ReadLine, bytes: Buffer, from: number, to: number): boolean {
  if (!stands(head, bytes, from, to)) return false
  const textFrom = from + head.length
  let at = textFrom
  let escapes = 0
  for (; at < to && bytes[at] !== quote; at++)
    if (bytes[at] === backslash) {
      escapes++
      at++
    }
  const textTo = at++
  if (!stands(streamField, bytes, at, to)) return false
  at += streamField.length
  const stream = streamAt(bytes, at)
  at += 6
  if (stream === 0 || bytes[at++] !== quote) return false
  if (stands(attrsField, bytes, at, to)) at = behindObject(bytes, at + attrsField.length, to)
  if (!stands(timeField, bytes, at, to)) return false
  at += timeField.length
  if (to - at < 22 || bytes[to - 1] !== closeBrace || bytes[to - 2] !== quote) return false
  const timeUs = rfc3339Us(bytes, at, to - 2)
  if (timeUs === 0) return false
  // Most texts have one escape, the line feed at their end.
  const isWhole =
    bytes[textTo - 1] === letterN && bytes[textTo - 2] === backslash && isEscape(bytes, textFrom, textTo - 2)
  const end = isWhole ? textTo - 2 : textTo
  if (escapes === (isWhole ? 1 : 0)) {
    line.from = textFrom
    line.to = end
  } else {
    const target = end - textFrom <= scratch.length ? scratch : Buffer.allocUnsafe(end - textFrom)
    const length = unescapeTo(target, bytes, textFrom, end)
    if (length < 0) return false
    line.bytes = target
    line.from = 0
    line.to = length
  }
  line.stream = stream
  line.timeUs = timeUs
  line.isPart = !isWhole
  return true
}

function stands(words: Buffer, bytes: Buffer, at: number, to: number): boolean {
  if (at + words.length > to) return false
  for (let i = 0; i < words.length; i++) if (bytes[at + i] !== words[i]) return false
  return true
}

/** Whether the backslash there is not itself escaped. */
function isEscape(bytes: Buffer, from: number, at: number): boolean {
  let first = at
  while (first > from && bytes[first - 1] === backslash) first--
  return (at - first) % 2 === 0
}

/** End of an object after its opening brace; the end of the line if it is not closed. */
function behindObject(bytes: Buffer, from: number, to: number): number {
  let open = 1
  let isText = false
  let at = from
  for (; at < to && open > 0; at++) {
    const byte = bytes[at]!
    if (byte === quote) isText = !isText
    else if (isText) at += byte === backslash ? 1 : 0
    else if (byte === openBrace) open++
    else if (byte === closeBrace) open--
  }
  return at
}

/** Shared buffer, valid until the next line. Docker cuts texts at 16 KiB, before escaping. */
const scratch = Buffer.allocUnsafe(96 * 1024)

/** Writes an unescaped JSON string and returns its length; -1 for an invalid escape. */
function unescapeTo(target: Buffer, bytes: Buffer, from: number, to: number): number {
  let length = 0
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!
    if (byte !== backslash) {
      target[length++] = byte
      continue
    }
    const sign = bytes[++at]!
    if (at >= to) return -1
    if (sign !== letterU) {
      const meant = signs[sign]!
      if (meant === 0) return -1
      target[length++] = meant
      continue
    }
    let code = unit(bytes, at + 1, to)
    if (code < 0) return -1
    at += 4
    // A pair is one character; half a pair is invalid (RFC 8259, section 8.2).
    if (code >= 0xd800 && code < 0xe000) {
      const low =
        code < 0xdc00 && bytes[at + 1] === backslash && bytes[at + 2] === letterU
          ? unit(bytes, at + 3, to)
          : 0
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + low - 0xdc00
        at += 6
      } else code = 0xfffd
    }
    length = writeUtf8(target, length, code)
  }
  return length
}

/** Value of four hexadecimal digits; negative if invalid. */
function unit(bytes: Buffer, at: number, to: number): number {
  if (at + 4 > to) return -1
  const [a, b, c, d] = [hex[bytes[at]!]!, hex[bytes[at + 1]!]!, hex[bytes[at + 2]!]!, hex[bytes[at + 3]!]!]
  return (a | b | c | d) < 0 ? -1 : (a << 12) | (b << 8) | (c << 4) | d
}

function writeUtf8(target: Buffer, at: number, code: number): number {
  if (code < 0x80) {
    target[at] = code
    return at + 1
  }
  if (code < 0x800) {
    target[at] = 0xc0 | (code >> 6)
    target[at + 1] = 0x80 | (code & 0x3f)
    return at + 2
  }
  if (code < 0x10000) {
    target[at] = 0xe0 | (code >> 12)
    target[at + 1] = 0x80 | ((code >> 6) & 0x3f)
    target[at + 2] = 0x80 | (code & 0x3f)
    return at + 3
  }
  target[at] = 0xf0 | (code >> 18)
  target[at + 1] = 0x80 | ((code >> 12) & 0x3f)
  target[at + 2] = 0x80 | ((code >> 6) & 0x3f)
  target[at + 3] = 0x80 | (code & 0x3f)
  return at + 4
}

/** Reads any JSON object with a `log`, as other programs may write it. */
function readAny(line: ReadLine, bytes: Buffer, from: number, to: number): boolean {
  if (bytes[from] !== openBrace || bytes[to - 1] !== closeBrace) return false
  let object: { log?: unknown; stream?: unknown; time?: unknown }
  try {
    object = JSON.parse(bytes.toString('utf8', from, to))
  } catch {
    // An incomplete line, as after a crash of the host, is passed on unchanged.
    return false
  }
  if (typeof object.log !== 'string') return false
  const text = Buffer.from(object.log)
  line.isPart = text[text.length - 1] !== lineFeed
  line.bytes = text
  line.from = 0
  line.to = line.isPart ? text.length : text.length - 1
  line.stream = object.stream === 'stdout' ? stdoutStream : object.stream === 'stderr' ? stderrStream : 0
  if (typeof object.time === 'string' && object.time.length <= 40) {
    const time = Buffer.from(object.time)
    line.timeUs = rfc3339Us(time, 0, time.length)
  }
  return true
}

const lineFeed = 0x0a
const quote = 0x22
const backslash = 0x5c
const letterN = 0x6e
const letterU = 0x75
const openBrace = 0x7b
const closeBrace = 0x7d

const hex = new Int8Array(256).fill(-1)
for (let i = 0; i < 16; i++) {
  hex['0123456789abcdef'.charCodeAt(i)] = i
  hex['0123456789ABCDEF'.charCodeAt(i)] = i
}

/** Character of an escape sign (RFC 8259, section 7); 0: invalid. */
const signs = new Uint8Array(256)
for (const [sign, meant] of Object.entries({
  '"': 0x22,
  '\\': 0x5c,
  '/': 0x2f,
  b: 0x08,
  f: 0x0c,
  n: 0x0a,
  r: 0x0d,
  t: 0x09,
}))
  signs[sign.charCodeAt(0)] = meant
