import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, jsonFlag, modeFlag } from './arguments.ts'

export const validate: Command = {
  name: 'validate',
  summary: 'check the configuration and print all problems',
  flags: [
    configFlag,
    modeFlag,
    {
      name: 'no-files',
      summary: 'skip certificates and other files named in keys, for a configuration of another host',
    },
    jsonFlag,
  ],
  exits: {
    [ExitCode.usage]: 'there are problems',
    [ExitCode.permission]: 'this user may not read the configuration',
  },
  word: { name: 'FILE', summary: 'the same as --config FILE' },
  run: async args => {
    const [file] = args.words
    if (file !== undefined && args.has('config'))
      throw new StartError('cannot check two files at once: omit --config or FILE', ExitCode.usage)
    const { validateFile } = await import('./validate-file.ts')
    return validateFile(args, file ?? args.value('config'))
  },
}
