import { stringify } from 'yaml'

/** A key of the configuration, formatted as YAML. */
export interface Leaf {
  readonly key: string
  readonly value: unknown
  /** Comment lines above it, without `#`. */
  readonly above?: readonly string[]
  /** Comment after it. */
  readonly beside?: string
  /** Commented out, so that it does not count as set. */
  readonly isComment?: boolean
}

/** Longer lists and maps are written on several lines. */
const longestFlow = 60

/** Writes keys, in their order, as one YAML document. `titleOf` returns the title of a group of keys. */
export function yamlTree(leaves: readonly Leaf[], titleOf: (path: string) => string = () => ''): string {
  const lines: string[] = []
  // A group without set keys is commented out too: without a value it would be null.
  const counts = new Set<string>()
  for (const { key, isComment } of leaves) if (!isComment) for (const path of groupsOf(key)) counts.add(path)
  let open: readonly string[] = []
  for (const leaf of leaves) {
    const groups = groupsOf(leaf.key)
    groups.forEach((path, depth) => {
      if (open[depth] === path) return
      if (depth === 0 && lines.length > 0) lines.push('')
      const indent = '  '.repeat(depth)
      const title = titleOf(path)
      if (title !== '') lines.push(`${indent}# ${title}`)
      lines.push(`${indent}${counts.has(path) ? '' : '# '}${nameOf(path)}:`)
      open = []
    })
    open = groups
    lines.push(...leafLines(leaf, '  '.repeat(groups.length)))
  }
  return lines.map(line => `${line}\n`).join('')
}

/** `a.b` and `a` of `a.b.c`, outermost first. */
function groupsOf(key: string): string[] {
  const names = key.split('.').slice(0, -1)
  return names.map((_, i) => names.slice(0, i + 1).join('.'))
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}

function leafLines(
  { key, value, above = [], beside = '', isComment = false }: Leaf,
  indent: string,
): string[] {
  const mark = isComment ? `${indent}# ` : indent
  const comment = beside === '' ? '' : `  # ${beside}`
  const flow = stringify(value, {
    collectionStyle: 'flow',
    flowCollectionPadding: false,
    lineWidth: 0,
  }).trimEnd()
  const isShort = !flow.includes('\n') && (flow.length <= longestFlow || typeof value !== 'object')
  const head = above.map(line => `${indent}# ${line}`)
  if (isShort) return [...head, `${mark}${nameOf(key)}: ${flow}${comment}`]
  if (typeof value === 'string') return [...head, `${mark}${nameOf(key)}: ${JSON.stringify(value)}${comment}`]
  const block = stringify(value, { lineWidth: 0 }).trimEnd().split('\n')
  return [...head, `${mark}${nameOf(key)}:${comment}`, ...block.map(line => `${mark}  ${line}`)]
}
