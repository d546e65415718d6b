import { encodePprof } from '../lib/pprof.ts'
import type { StackProfile } from './stack-profile.ts'

/** All code of this process is one program, already symbolized. */
const program = { path: 'svc', buildId: '', start: 0, limit: 0, offset: 0 }

/** Encodes a profile of this process for `go tool pprof`. */
export function stackProfileToPprof(profile: StackProfile): Promise<Buffer> {
  const { types, shown, period, comments, startMs, durationMs = 0 } = profile
  return encodePprof({
    types,
    shown,
    samples: profile.samples.map(({ stack, values }) => ({ frames: stack, values })),
    program,
    startUs: Math.round(startMs) * 1000,
    durationUs: durationMs * 1000,
    period,
    comments,
  })
}
