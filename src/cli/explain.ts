import { ExitCode, StartError } from '../lib/start-error.ts'
import { type Command, configFlag, jsonFlag, urlFlag } from './arguments.ts'

export const explain: Command = {
  name: 'explain',
  summary: 'say why a process is observed or not, and where its data went',
  flags: [jsonFlag, configFlag, urlFlag],
  word: {
    name: 'TARGET',
    summary:
      'a port, the number of a process, or the name of a service, program, container or pod; port:80 and pid:80 where two look alike',
    required: true,
  },
  exits: { [ExitCode.general]: 'something is not observed, or there is no such thing' },
  async run(args) {
    const [target] = args.words
    if (target === undefined || target.trim() === '')
      throw new StartError(
        'what to explain? Name a port, a process number, a service, a program, a container or a pod: svc explain 8080',
        ExitCode.usage,
      )
    // Loaded here, for an agent that runs needs none of it.
    const { explainTarget } = await import('./explain/target.ts')
    return explainTarget(args, target)
  },
}
