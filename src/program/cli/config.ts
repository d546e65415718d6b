import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import {
  type Arguments,
  type Command,
  configFlag,
  diffFlag,
  jsonFlag,
  modeFlag,
  urlFlag,
} from './arguments.ts'

const forms = ['effective', 'diff', 'default', 'schema', 'example'] as const
type Form = (typeof forms)[number]

export const config: Command = {
  name: 'config',
  summary: 'print the configuration as the agent reads it, with the source of each value',
  flags: [
    {
      name: 'effective',
      summary: 'the configuration in effect (the default): of the running agent, else of the file',
    },
    diffFlag,
    { name: 'default', summary: 'all keys with their defaults and meanings' },
    { name: 'schema', summary: 'the JSON Schema of the file, for editors' },
    { name: 'example', summary: 'an example file; all lines are comments' },
    jsonFlag,
    configFlag,
    modeFlag,
    urlFlag,
  ],
  async run(args) {
    const form = formOf(args)
    if (form === 'example' && args.has('json'))
      throw new StartError(
        '--example is a YAML file with comments: it cannot be printed as JSON',
        ExitCode.usage,
      )
    // Loaded on demand: the agent does not need it.
    switch (form) {
      case 'effective':
      case 'diff':
        return (await import('./config/effective.ts')).effective(args, form === 'diff')
      case 'default':
        return (await import('./config/fallbacks.ts')).fallbacks(args.has('json'))
      case 'schema': {
        const [{ jsonSchema }, { print }] = await Promise.all([
          import('../../config/index.ts'),
          import('./terminal.ts'),
        ])
        print(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
        return ExitCode.ok
      }
      case 'example': {
        const [{ example }, { print }] = await Promise.all([
          import('./config/example.ts'),
          import('./terminal.ts'),
        ])
        print(example)
        return ExitCode.ok
      }
    }
  },
}

function formOf(args: Arguments): Form {
  const given = forms.filter(form => args.has(form))
  if (given.length <= 1) return given[0] ?? 'effective'
  const flags = given.map(form => `--${form}`).join(' and ')
  throw new StartError(`cannot print two things at once: ${flags} exclude each other`, ExitCode.usage)
}
