import { type Folded, foldedOf } from './folded.ts'

/** What `node --cpu-prof` writes (Chrome DevTools Protocol, Profiler.Profile); times are microseconds. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/**
 * Stacks of the functions of one file, root first; other frames are left out, and samples without any are dropped. The
 * count is the samples of V8's own profiler, taken after `skipUs`.
 */
export function foldCpuProfile({ nodes, samples, timeDeltas }: CpuProfile, file: string, skipUs = 0): Folded {
  const parents = new Map<number, number>()
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id)
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url } }) => [
      id,
      url.endsWith(file) ? functionName || '(anonymous)' : '',
    ]),
  )
  const stackOf = (leaf: number): string => {
    const frames: string[] = []
    for (let id: number | undefined = leaf; id !== undefined; id = parents.get(id)) {
      const name = names.get(id)!
      if (name !== '') frames.push(name)
    }
    return frames.toReversed().join(';')
  }
  const stacks: [string, number][] = []
  let elapsedUs = 0
  for (const [i, leaf] of samples.entries()) {
    elapsedUs += timeDeltas[i]!
    const stack = elapsedUs < skipUs ? '' : stackOf(leaf)
    if (stack !== '') stacks.push([stack, 1])
  }
  return foldedOf(stacks)
}
