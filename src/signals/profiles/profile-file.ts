import type { ProfileFile } from '../../foundation/lib/profile-file.ts'
import { Turn } from '../../foundation/lib/turn.ts'
import type { ProfileFormat, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { type Asked, flameGraph, titleOf, wholeProfile } from './flame-graph.ts'
import { jsonParts } from './flame-json.ts'
import { svgParts } from './flame-svg.ts'
import { foldedParts } from './folded.ts'
import { shareText } from './frame-text.ts'
import { profileToPprof } from './pprof-profile.ts'

/** Nodes for a file of folded stacks, which other tools want complete. */
const mostFoldedNodes = 1 << 16

/** A recorded profile in a format. Folded stacks, drawings and JSON yield to the event loop regularly. */
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

/** Bytes of a text in parts, each of which is quick to make. */
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

/** Information that pprof has no field for. */
function commentsOf(taken: TakenProfile, asked: Asked): string[] {
  const { busyNs, idleNs, lostSamples } = taken
  return [
    titleOf(taken, asked),
    ...(busyNs + idleNs > 0 ? [`host ${shareText(busyNs, busyNs + idleNs)} busy`] : []),
    ...(lostSamples > 0 ? [`${lostSamples} samples lost`] : []),
  ]
}
