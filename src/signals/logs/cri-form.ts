import { type LineForm, stderrStream, stdoutStream } from './line-form.ts'
import { rfc3339Us } from './timestamp.ts'

/**
 * `2026-01-01T00:00:00.123456789Z stdout F text`: format of containerd and CRI-O (Kubernetes, "CRI logging format"),
 * and of Podman's `k8s-file`. `P` marks a part that continues in the next line of its stream; further tags follow a
 * colon.
 */
export const criForm: LineForm = (line, bytes, from, to) => {
  line.set(bytes, from, to)
  // "1970-01-01T00:00:00Z stdout F": a line without text may end after its tag.
  let at = from
  const most = Math.min(to, from + 40)
  while (at < most && bytes[at] !== space) at++
  const timeUs = rfc3339Us(bytes, from, at)
  if (timeUs === 0 || at + 9 > to) return false
  const stream = streamAt(bytes, at + 1)
  if (stream === 0 || bytes[at + 7] !== space) return false
  const tag = bytes[at + 8]
  if (tag !== letterF && tag !== letterP) return false
  let text = at + 9
  if (bytes[text] === colon) while (text < to && bytes[text] !== space) text++
  if (text < to && bytes[text++] !== space) return false
  line.timeUs = timeUs
  line.stream = stream
  line.isPart = tag === letterP
  line.from = Math.min(text, to)
  return true
}

/** Stream named at an offset: 1 for `stdout`, 2 for `stderr`, 0 for neither. */
export function streamAt(bytes: Uint8Array, at: number): 0 | 1 | 2 {
  if (bytes[at] !== 0x73 || bytes[at + 1] !== 0x74 || bytes[at + 2] !== 0x64) return 0
  if (bytes[at + 3] === 0x6f && bytes[at + 4] === 0x75 && bytes[at + 5] === 0x74) return stdoutStream
  return bytes[at + 3] === 0x65 && bytes[at + 4] === 0x72 && bytes[at + 5] === 0x72 ? stderrStream : 0
}

const space = 0x20
const colon = 0x3a
const letterF = 0x46
const letterP = 0x50
