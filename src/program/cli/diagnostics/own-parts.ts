import { formatProblems, type LoadedConfig, shownKeys } from '../../../config/index.ts'
import { examine } from '../../doctor/examine.ts'
import { report } from '../../doctor/report.ts'
import type { Part } from './part.ts'

const Ki = 1024

/** Parts made by the command itself: the configuration as it would be loaded now, and the results of doctor. */
export function ownParts(loaded: LoadedConfig): Part[] {
  // Both parts share one examination, which takes seconds.
  let examined: ReturnType<typeof examine> | undefined
  const diagnosis = () => {
    examined ??= examine(loaded)
    return examined
  }
  const whole = (body: string) => ({ body, cut: false })
  return [
    {
      name: 'configuration.json',
      what: 'The configuration that a start would use now: each key with its value and source, and all problems',
      source: loaded.file ?? 'no file, defaults and environment',
      form: 'json',
      mostBytes: 512 * Ki,
      collect: async () => whole(JSON.stringify(configurationOf(loaded))),
    },
    {
      name: 'doctor.txt',
      what: 'Host checks, run now',
      source: 'svc doctor',
      form: 'text',
      mostBytes: 128 * Ki,
      collect: async () => whole(report(await diagnosis(), false)),
    },
    {
      name: 'doctor.json',
      what: 'The same as JSON',
      source: 'svc doctor --json',
      form: 'json',
      mostBytes: 256 * Ki,
      collect: async () => whole(JSON.stringify(await diagnosis())),
    },
  ]
}

function configurationOf(loaded: LoadedConfig) {
  const { file, problems, warnings, notes } = loaded
  return {
    file,
    problems: problems.map(problem => formatProblems([problem]).trim()),
    warnings,
    notes,
    keys: shownKeys(loaded),
  }
}
