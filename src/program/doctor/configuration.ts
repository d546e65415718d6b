import { formatProblems, notBuiltFeatures } from '../../config/index.ts'
import { check } from './check.ts'

export const settings = check({
  name: 'settings',
  group: 'configuration',
  summary: 'The configuration is valid and supported by this version',
  reads: 'file',
  impact: 'the agent: it does not start',
  faults: {
    invalid: {
      state: 'missing',
      what: 'the file or a variable has errors; the other checks use defaults instead',
      hints: { any: 'svc validate shows each error with its position' },
    },
    not_built: {
      state: 'limited',
      what: 'a key enables a feature that this version does not have',
      impact: 'the feature of that key',
      hints: { config: 'remove the key' },
    },
    not_built_by_default: {
      state: 'note',
      what: 'defaults enable features that this version does not have',
      hints: { any: 'none needed: they start with the version that has them' },
    },
    doubtful: {
      state: 'note',
      what: 'the configuration is valid, but probably not as intended',
      hints: { any: 'svc validate shows it, too; correct it as the message says' },
    },
  },
  try: ({ loaded }) => {
    const { problems, file, config, origins, warnings } = loaded
    if (problems.length > 0) {
      const first = formatProblems(problems.slice(0, 1)).trim()
      const detail = problems.length === 1 ? first : `${problems.length} problems, the first: ${first}`
      return [{ fault: 'invalid', detail }]
    }
    const features = notBuiltFeatures(config, origins)
    const asked = features.filter(({ explicit }) => explicit)
    const byDefault = grouped(features.filter(({ explicit }) => !explicit).map(({ key }) => key))
    return [
      { ok: file === null ? 'no file, using defaults' : `${file} is valid` },
      ...warnings.map(detail => ({ fault: 'doubtful', detail }) as const),
      ...asked.map(({ key, why }) => ({ fault: 'not_built', detail: `${key} is set: ${why}` }) as const),
      ...(byDefault.length > 0
        ? [{ fault: 'not_built_by_default', detail: byDefault.join(', ') } as const]
        : []),
    ]
  },
})

/** Merges keys of one branch: `a.{b, c}`. */
function grouped(keys: readonly string[]): string[] {
  const branches = new Map<string, string[]>()
  for (const key of keys) {
    const branch = key.slice(0, key.lastIndexOf('.') + 1)
    branches.set(branch, [...(branches.get(branch) ?? []), key.slice(branch.length)])
  }
  return [...branches].map(
    ([branch, names]) => `${branch}${names.length > 1 ? `{${names.join(', ')}}` : names[0]}`,
  )
}
