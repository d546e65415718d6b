// Processor rules as a separate text, for trying them out.

import { type Problem, reportInto } from '../foundation/schema/problem.ts'
import { branch, build, readBranch, type Settings } from '../foundation/schema/tree.ts'
import { fileSource } from '../foundation/schema/value.ts'
import { parseYaml } from '../foundation/schema/yaml-place.ts'
import { effective, type Sourced } from './effective.ts'
import { type Config, schema } from './schema.ts'
import { pipeline } from './schema-pipeline.ts'
import { thisRuntime, validate } from './validate.ts'

export interface Processing {
  /** Complete even with problems. */
  readonly pipeline: Config['pipeline']
  readonly problems: readonly Problem[]
  /** Settings without effect, in sentences. */
  readonly warnings: readonly string[]
}

const { enabled, limits, pii_redaction, transform } = pipeline.keys

/** The settings of processors; they may also be below `pipeline:`, as in a file. */
const processing = branch(
  pipeline.description,
  { enabled, limits, transform, pii_redaction },
  { groups: { pipeline: ['enabled', 'limits', 'transform', 'pii_redaction'] } },
)

const mostProblems = 20

/**
 * Reads the processor settings below `pipeline:`; missing ones have their defaults. `name` is the text's name in
 * problems. References such as `${VAR}` and `${file:}` stay unexpanded: a user who may try rules may read neither
 * variables nor files of the agent. Never throws.
 */
export function readProcessing(name: string, text: string): Processing {
  const problems: Problem[] = []
  const report = reportInto(problems, false, mostProblems)
  const given: Settings = new Map()
  const value = parseYaml(fileSource(name, text), {}, report)
  if (value !== undefined)
    readBranch(processing, value, { written: '', canonical: 'pipeline' }, given, report)
  const sourced = [...given].map(([path, setting]): [string, Sourced] => [
    path,
    { ...setting, source: 'file' },
  ])
  const settings = effective(new Map(sourced))
  const config = build(schema, settings)
  const wrong = problems.map(({ key }) => (key.startsWith('pipeline.') ? key : `pipeline.${key}`))
  validate(config, settings, wrong, thisRuntime(), report)
  problems.sort((a, b) => a.line - b.line || a.column - b.column)
  return { pipeline: config.pipeline, problems, warnings: idle(config.pipeline) }
}

function idle({ enabled: isOn, transform: own, pii_redaction: redaction }: Config['pipeline']): string[] {
  if (!isOn) return ['pipeline.enabled is false: no limits, transformation or redaction']
  const warnings: string[] = []
  if (!own.enabled && own.rules.length > 0)
    warnings.push('transform.enabled is false, so its rules have no effect; set transform.enabled: true')
  if (!redaction.enabled && redaction.rules.length > 0)
    warnings.push(
      'pii_redaction.enabled is false, so its rules have no effect; set pii_redaction.enabled: true',
    )
  return warnings
}
