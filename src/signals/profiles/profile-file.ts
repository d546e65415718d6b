import type { ProfileFile } from '../../foundation/lib/profile-file.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { ProfileFormat, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { type Asked, flameGraph, titleOf, wholeProfile } from './flame-graph.ts'
import { jsonParts } from './flame-json.ts'
import { svgParts } from './flame-svg.ts'
import { foldedParts } from './folded.ts'
import { shareText } from './frame-text.ts'
import { profileToPprof } from './pprof-profile.ts'

/** Nodes for a file of folded stacks, which other tools are to have in full. */
const mostFoldedNodes = 1 << 16

/** A taken profile in a format. Folded stacks, drawings and JSON hold back the event loop for a moment at a time. */
export async function profileFile(
  taken: TakenProfile,
  asked: Asked,
  format: ProfileFormat,
): Promise<ProfileFile> {
  switch (format) {
    case 'pprof': {
      const body = await profileToPprof(wholeProfile(taken, asked), commentsOf(taken, asked))
      return { contentType: 'application/octet-stream', fileName: `${asked.kind}.pb.gz`, body }
    }
    case 'folded': {
      const { tree } = await flameGraph(taken, asked, mostFoldedNodes)
      const body = await bytesInTurns(foldedParts(tree))
      return { contentType: 'text/plain; charset=utf-8', fileName: `${asked.kind}.folded`, body }
    }
    case 'svg': {
      const body = await bytesInTurns(svgParts(await flameGraph(taken, asked)))
      return { contentType: 'image/svg+xml', fileName: `${asked.kind}.svg`, body }
    }
    case 'json': {
      const body = await bytesInTurns(jsonParts(await flameGraph(taken, asked)))
      return { contentType: 'application/json', fileName: `${asked.kind}.json`, body }
    }
  }
}

/** The bytes of a text that comes in parts, each of which is quickly made. */
async function bytesInTurns(parts: Iterable<string>): Promise<Buffer> {
  const turn = new Turn(1)
  const done: Buffer[] = []
  let text = ''
  for (const part of parts) {
    text += part
    if (text.length < 16_384) continue
    done.push(Buffer.from(text))
    text = ''
    if (turn.isOver) await turn.next()
  }
  done.push(Buffer.from(text))
  return Buffer.concat(done)
}

/** What a pprof file has no place for. */
function commentsOf(taken: TakenProfile, asked: Asked): string[] {
  const { busyNs, idleNs, lostSamples } = taken
  return [
    titleOf(taken, asked),
    ...(busyNs + idleNs > 0 ? [`host ${shareText(busyNs, busyNs + idleNs)} busy`] : []),
    ...(lostSamples > 0 ? [`${lostSamples} samples lost`] : []),
  ]
}
