import { Attributes } from '../../src/foundation/model/attributes.ts'
import type { Frame, FrameType, Sample } from '../../src/foundation/model/profile.ts'
import type { ProfiledGroup, TakenProfile } from '../../src/foundation/model/taken-profile.ts'

const period = 10_000_000

/** A function of a program. */
export function frame(name: string, type?: FrameType, file = '/usr/bin/program'): Frame {
  return { name, file, line: 0, ...(type && { type }) }
}

/** A sample of so many periods; the outermost function first. */
export function sampleOf(count: number, frames: readonly Frame[], thread = 'main'): Sample {
  return {
    frames: frames.toReversed(),
    value: count * period,
    attributes: Attributes.of({ 'thread.name': thread }),
  }
}

/** Samples of CPU time of some processes over two seconds. */
export function groupOf(service: string, pids: readonly number[], samples: readonly Sample[]): ProfiledGroup {
  const times = { startUs: 1_790_000_000_000_000, durationUs: 2_000_000 }
  const profile = { kind: 'cpu', unit: 'nanoseconds', ...times, period, samples } as const
  return { service, executable: `/usr/bin/${service}`, pids, profile }
}

/** Of a host whose two CPUs were busy for a quarter of two seconds. */
export function taken(groups: readonly ProfiledGroup[]): TakenProfile {
  return { groups, busyNs: 1e9, idleNs: 3e9, lostSamples: 0 }
}

/** Names that would do harm where they were taken as they are. */
export const hostileNames = [
  '</svg><script>alert(1)</script>',
  ']]><a href="javascript:x">',
  '"onload="x',
  "&amp;'<!--",
  'a;b;c 12\nd 13',
  '\u001b]0;title\u0007\u001b[2J\r\u202eevil',
  '\ud800\uffff\ufffe\0',
  '{"a":[1]}\u2028',
  'x'.repeat(10_000),
  '',
  '__proto__',
]

/** A shop that computes, and a worker with code that has no name and with hostile names. */
export function shopAndWorker(): TakenProfile {
  const main = frame('main', 'native')
  return taken([
    groupOf(
      'shop',
      [12],
      [
        sampleOf(60, [
          main,
          frame('serve', 'native'),
          frame('parse(char const*)', 'native', '/usr/lib/libparse.so'),
        ]),
        sampleOf(20, [main, frame('serve', 'native')]),
        sampleOf(10, [main, frame('serve', 'native'), frame('tcp_sendmsg', 'kernel', '')], 'net'),
      ],
    ),
    groupOf(
      'worker',
      [31, 32, 33, 34],
      [
        sampleOf(5, [main, frame('[stripped]', 'native')]),
        sampleOf(5, [main, ...hostileNames.map(name => frame(name, 'v8js', `/srv/${name}`))]),
      ],
    ),
  ])
}
