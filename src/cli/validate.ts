import { ExitCode, StartError } from '../lib/start-error.ts'
import { type Command, configFlag, jsonFlag, modeFlag } from './arguments.ts'

export const validate: Command = {
  name: 'validate',
  summary: 'check the configuration and say everything that is wrong with it',
  flags: [
    configFlag,
    modeFlag,
    {
      name: 'no-files',
      summary:
        'do not look at certificates and other files that keys name: the configuration is for another host',
    },
    jsonFlag,
  ],
  exits: {
    [ExitCode.usage]: 'something is wrong',
    [ExitCode.permission]: 'this user may not read the configuration',
  },
  word: { name: 'FILE', summary: 'the same as --config FILE' },
  run: async args => {
    const [file] = args.words
    if (file !== undefined && args.has('config'))
      throw new StartError('cannot check two files at once: leave out --config or FILE', ExitCode.usage)
    const { validateFile } = await import('./validate-file.ts')
    return validateFile(args, file ?? args.value('config'))
  },
}
