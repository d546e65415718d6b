/** Stacks as text, root first with ';' between the frames, and how often each was met. */
export type Folded = ReadonlyMap<string, number>

/** Reads the lines `root;…;leaf count`, one for each stack. */
export function parseFolded(text: string): Folded {
  const stacks: [string, number][] = []
  for (const line of text.split('\n')) {
    const space = line.lastIndexOf(' ')
    if (space > 0) stacks.push([line.slice(0, space), Number(line.slice(space + 1))])
  }
  return foldedOf(stacks)
}

/** The same stack may come more than once. */
export function foldedOf(stacks: Iterable<readonly [string, number]>): Folded {
  const folded = new Map<string, number>()
  for (const [stack, count] of stacks) folded.set(stack, (folded.get(stack) ?? 0) + count)
  return folded
}

export function totalOf(folded: Folded): number {
  let total = 0
  for (const count of folded.values()) total += count
  return total
}

/** Changes the frames, root first; what is left without frames is dropped. */
export function mapFrames(folded: Folded, change: (frames: readonly string[]) => readonly string[]): Folded {
  const changed: [string, number][] = []
  for (const [stack, count] of folded) {
    const frames = change(stack.split(';'))
    if (frames.length > 0) changed.push([frames.join(';'), count])
  }
  return foldedOf(changed)
}

/**
 * One spelling for what tools call differently: clones that the compiler made (`.part.0`), versions (`@GLIBC_2.34`), and
 * which of several names of one address they took (`__GI_`, leading underscores).
 */
export function plainName(name: string): string {
  return name
    .replace(/\.(?:part|constprop|isra|cold|lto_priv|llvm)\b(?:\.\d+)?/g, '')
    .replace(/@.*/, '')
    .replace(/^__GI_/, '')
    .replace(/^_+(?=[a-z])/i, '')
}

/** From the outermost frame of that name on; stacks without it keep their frames below `[no root]`. */
export function below(folded: Folded, root: string): Folded {
  return mapFrames(folded, frames => {
    const at = frames.indexOf(root)
    return at < 0 ? ['[no root]', ...frames] : frames.slice(at)
  })
}

/** With plain names. */
export function plain(folded: Folded): Folded {
  return mapFrames(folded, frames => frames.map(plainName))
}

/** Which part of all counts has a stack for which `test` holds: 0 to 1. */
export function shareOf(folded: Folded, test: (frames: readonly string[]) => boolean): number {
  let part = 0
  for (const [stack, count] of folded) if (test(stack.split(';'))) part += count
  return part / totalOf(folded)
}
