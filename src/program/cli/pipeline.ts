import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { signals } from '../../foundation/model/signal.ts'
import { type Command, configFlag, diffFlag, jsonFlag } from './arguments.ts'

export const pipeline: Command = {
  name: 'pipeline',
  summary: 'apply limits, redaction and transformation to telemetry from a file',
  flags: [
    configFlag,
    {
      name: 'input',
      value: 'FILE',
      summary: 'file of OTLP JSON, one request per line or one document; - for standard input',
    },
    { name: 'signal', value: 'SIGNAL', summary: 'only traces, metrics, logs or profiles', choices: signals },
    diffFlag,
    jsonFlag,
  ],
  word: {
    name: 'ACTION',
    choices: ['test'],
    summary:
      'test (the default) runs the items through the configured processors and prints the result as OTLP JSON. Nothing is sent or stored.',
  },
  async run(args) {
    const [action = 'test'] = args.words
    if (action !== 'test')
      throw new StartError(`unknown action "${action}"; the only action is test`, ExitCode.usage)
    const { tryPipeline } = await import('./pipeline/try-pipeline.ts')
    return tryPipeline(args)
  },
}
