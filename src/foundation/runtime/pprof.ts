import { encodePprof } from '../lib/pprof.ts'
import type { StackProfile } from './stack-profile.ts'

/** All code of this process is one program: its names are known here, and nowhere else. */
const program = { path: 'svc', buildId: '', start: 0, limit: 0, offset: 0 }

/** A profile of this process as `go tool pprof` reads it. */
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
