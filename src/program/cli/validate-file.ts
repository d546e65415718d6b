import { type LoadedConfig, notBuiltFeatures } from '../../config/index.ts'
import { counted } from '../../foundation/lib/number-text.ts'
import { ExitCode } from '../../foundation/lib/start-error.ts'
import type { Arguments } from './arguments.ts'
import { configurationOf, exitOf, sayProblems } from './configuration.ts'
import { print } from './terminal.ts'

/**
 * Checks one file with the environment applied, as a start would read it, and the files that it names unless
 * `--no-files` says that those are on another host.
 */
export function validateFile(args: Arguments, path: string | undefined): ExitCode {
  const loaded = configurationOf(args, path, !args.has('no-files'))
  if (args.has('json')) {
    print(`${JSON.stringify(documentOf(loaded), undefined, 2)}\n`)
    return loaded.problems.length > 0 ? exitOf(loaded) : ExitCode.ok
  }
  if (loaded.problems.length > 0) {
    sayProblems(loaded)
    return exitOf(loaded)
  }
  print(`configuration is valid\n${summary(loaded)}`)
  return ExitCode.ok
}

/** The same for programs, such as editors or CI. */
function documentOf({ file, problems, warnings, config, origins }: LoadedConfig) {
  return {
    file,
    valid: problems.length === 0,
    problems: problems.map(({ where, line, column, key, message }) => ({
      file: where,
      line,
      column,
      key,
      message,
    })),
    warnings,
    unsupported_keys: notBuiltFeatures(config, origins)
      .filter(({ explicit }) => explicit)
      .map(({ key }) => key),
  }
}

function summary(loaded: LoadedConfig): string {
  const { config, origins, file } = loaded
  // Several keys may have the same setting.
  const settings = new Set<string>()
  const variables = new Set<string>()
  for (const { source, name, line, column } of origins.values()) {
    if (source === 'file') settings.add(`${line}:${column}`)
    if (source === 'environment' || source === 'otel') variables.add(name)
  }
  const read =
    file === null ? 'no configuration file, using defaults' : `${file}: ${counted(settings.size, 'setting')}`
  const lines = [
    `${read}; ${counted(variables.size, 'variable')} of the environment`,
    `mode ${config.mode}, ${config.otlp.endpoint === '' ? 'no export' : `export to ${config.otlp.endpoint}`}`,
    ...loaded.warnings.map(warning => `warning: ${warning}`),
    ...notBuiltFeatures(config, origins)
      .filter(({ explicit }) => explicit)
      .map(({ key, why }) => `warning: ${key} is set: ${why}`),
  ]
  return lines.map(line => `${line}\n`).join('')
}
