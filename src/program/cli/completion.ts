import { nearest } from '../../foundation/lib/nearest.ts'
import { ExitCode, StartError } from '../../foundation/lib/start-error.ts'
import type { Command } from './arguments.ts'
import { print } from './terminal.ts'

const shells = ['bash', 'zsh', 'fish'] as const

/** Completion for the listed commands, including itself. */
export const completionOf = (commands: () => readonly Command[]): Command => ({
  name: 'completion',
  summary: 'print a completion script for a shell',
  flags: [],
  word: {
    name: 'SHELL',
    summary:
      'bash: source <(svc completion bash). zsh: source <(svc completion zsh) after compinit. fish: svc completion fish | source',
    choices: shells,
    required: true,
  },
  async run({ words: [word] }) {
    const shell = shells.find(each => each === word)
    if (shell === undefined) {
      const near = word === undefined ? undefined : nearest(word, shells)
      const wrong = word === undefined ? 'no shell given;' : `unknown shell "${word}";`
      throw new StartError(
        `${wrong} ${near ? `did you mean ${near}? ` : ''}the shells are ${shells.join(', ')}`,
        ExitCode.usage,
      )
    }
    // Loaded on demand: the agent does not need it.
    const scripts = await import('./completion/scripts.ts')
    print(scripts[shell](commands()))
    return ExitCode.ok
  },
})
