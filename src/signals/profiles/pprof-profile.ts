import { hexOf } from '../../foundation/lib/hex.ts'
import { encodePprof, type PprofLabel, type PprofSample } from '../../foundation/lib/pprof.ts'
import type { Profile, Sample, SpanLink } from '../../foundation/model/profile.ts'
import { periodTypeOf, sampleTypeOf, wholePeriod } from '../../foundation/model/profile-type.ts'

/**
 * A profile for `go tool pprof`. Sample attributes, trace and span become labels. `comments` are sentences for readers:
 * pprof has no field for a resource.
 */
export function profileToPprof(profile: Profile, comments: readonly string[] = []): Promise<Buffer> {
  const period = wholePeriod(profile)
  return encodePprof({
    types: [sampleTypeOf(profile)],
    shown: 0,
    samples: samplesOf(profile),
    startUs: profile.startUs,
    durationUs: profile.durationUs,
    ...(period > 0 && { period: { ...periodTypeOf(profile)!, value: period } }),
    comments,
  })
}

function* samplesOf({ samples }: Profile): Iterable<PprofSample> {
  for (const sample of samples)
    yield { frames: sample.frames, values: [sample.value], labels: labelsOf(sample) }
}

function labelsOf({ attributes, link }: Sample): PprofLabel[] {
  const labels: PprofLabel[] = []
  for (let i = 0; i < attributes.size; i++) {
    const value = attributes.values[i]!
    labels.push([attributes.keys[i]!, typeof value === 'number' ? value : labelText(value)])
  }
  if (link !== undefined) labels.push(...linkLabels(link))
  return labels
}

function labelText(value: string | boolean | readonly string[]): string {
  return typeof value === 'object' ? value.join(', ') : String(value)
}

/** Label names that pprof readers know. */
function linkLabels({ traceId, spanId }: SpanLink): PprofLabel[] {
  return [
    ['trace_id', hexOf(traceId)],
    ['span_id', hexOf(spanId)],
  ]
}
