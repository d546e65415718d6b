import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'

export const explain: Command = {
  name: 'explain',
  summary: 'show why a process is observed or not, and where its data goes',
  flags: [jsonFlag, configFlag, urlFlag],
  word: {
    name: 'TARGET',
    summary:
      'a port, a pid, or the name of a service, program, container or pod; port:80 and pid:80 if a number is ambiguous',
    required: true,
  },
  exits: { [ExitCode.general]: 'something is not observed, or was not found' },
  async run(args) {
    const [target] = args.words
    if (target === undefined || target.trim() === '')
      throw new StartError(
        'no target given; pass a port, a pid, a service, a program, a container or a pod: svc explain 8080',
        ExitCode.usage,
      )
    // Loaded on demand: the agent does not need it.
    const { explainTarget } = await import('./explain/target.ts')
    return explainTarget(args, target)
  },
}
