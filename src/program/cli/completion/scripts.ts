// Shell completion scripts, generated from the table of commands.

import { type Command, everywhere, type Flag } from '../arguments.ts'

type Commands = readonly Command[]

/** Flags whose values are file names or directories. */
const isFile = ({ value }: Flag) => value === 'FILE'
const isDirectory = ({ value }: Flag) => value === 'DIR'

/** All flags of a command; a command that parses its own flags has none here. */
function flagsOf({ flags, foreignFlags }: Command): readonly Flag[] {
  return foreignFlags ? [] : [...flags, ...everywhere]
}

function spellings({ name, short }: Flag): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`]
}

/** For bash 4 and later, without bash-completion: bash splits `--flag=value` into three words. */
export function bash(commands: Commands): string {
  const cases = commands.flatMap(command => {
    const flags = flagsOf(command)
    const valued = flags.filter(({ value }) => value !== undefined)
    return [
      `    ${command.name})`,
      `      flags='${flags.flatMap(spellings).join(' ')}'`,
      `      words='${(command.word?.choices ?? []).join(' ')}'`,
      `      takes_file=${command.word?.name === 'FILE' ? 'yes' : ''}`,
      '      case "$before" in',
      ...valued.filter(isFile).map(flag => `        ${spellings(flag).join('|')}) kind=file ;;`),
      ...valued.filter(isDirectory).map(flag => `        ${spellings(flag).join('|')}) kind=directory ;;`),
      ...valued
        .filter(({ choices }) => choices !== undefined)
        .map(
          flag => `        ${spellings(flag).join('|')}) kind=words words='${flag.choices!.join(' ')}' ;;`,
        ),
      ...valued
        .filter(flag => !isFile(flag) && !isDirectory(flag) && flag.choices === undefined)
        .map(flag => `        ${spellings(flag).join('|')}) kind=text ;;`),
      '      esac',
      '      ;;',
    ]
  })
  return `# bash completion of svc: source <(svc completion bash)
_svc() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before='' command='' flags='' words='' kind='' takes_file='' i
  (( COMP_CWORD > 0 )) && before="\${COMP_WORDS[COMP_CWORD-1]}"
  if [[ $current == = ]]; then
    current=''
  elif [[ $before == = ]] && (( COMP_CWORD > 1 )); then
    before="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  for (( i = 1; i < COMP_CWORD; i++ )); do
    case "\${COMP_WORDS[i]}" in
      ${commands.map(({ name }) => name).join('|')}) command="\${COMP_WORDS[i]}"; break ;;
    esac
  done
  COMPREPLY=()
  case "$command" in
    '')
      flags='${[...commands[0]!.flags, ...everywhere].flatMap(spellings).join(' ')}'
      words='${[...commands.map(({ name }) => name), 'help'].join(' ')}'
      ;;
${cases.join('\n')}
  esac
  case "$kind" in
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    directory) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    words) COMPREPLY=( $(compgen -W "$words" -- "$current") ); return ;;
    text) return ;;
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=( $(compgen -W "$flags" -- "$current") )
  elif [[ -n $takes_file ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  else
    COMPREPLY=( $(compgen -W "$words" -- "$current") )
  fi
}
complete -F _svc svc
`
}

/** For zsh 5, after compinit. */
export function zsh(commands: Commands): string {
  const described = commands.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`)
  const cases = commands.flatMap(command => {
    const word = command.word
    const words =
      word === undefined ? [] : [`        '1:${word.name.toLowerCase()}:${zshWord(word.name, word.choices)}'`]
    const lines = [...flagsOf(command).flatMap(zshFlag), ...words]
    return lines.length === 0
      ? [`      ${command.name}) ;;`]
      : [
          `      ${command.name})`,
          '        _arguments -s -S \\',
          ...lines.map((line, i) => (i < lines.length - 1 ? `${line} \\` : line)),
          '        ;;',
        ]
  })
  return `#compdef svc
# zsh completion of svc: source <(svc completion zsh)
_svc() {
  local -a commands
  commands=(
${described.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'command' commands
    return
  fi
  local command="\${words[2]}"
  shift words
  (( CURRENT-- ))
  case "$command" in
${cases.join('\n')}
  esac
}
(( $+functions[compdef] )) && compdef _svc svc
`
}

function zshFlag(flag: Flag): string[] {
  const { summary, value, choices } = flag
  const action = value === undefined ? '' : `:${value.toLowerCase()}:${zshWord(value, choices)}`
  return spellings(flag).map(spelling => {
    const takes = value === undefined ? '' : spelling.startsWith('--') ? '=' : '+'
    return `        '${spelling}${takes}[${zshText(summary)}]${action}'`
  })
}

function zshWord(kind: string, choices: readonly string[] | undefined): string {
  if (choices !== undefined) return `(${choices.join(' ')})`
  return kind === 'FILE' ? '_files' : kind === 'DIR' ? '_files -/' : ' '
}

/** Within single quotes, where brackets and colons separate the fields of \`_arguments\`. */
function zshText(text: string): string {
  return text.replaceAll("'", '’').replace(/[[\]:\\]/g, '\\$&')
}

/** For fish 3. */
export function fish(commands: Commands): string {
  const names = commands.map(({ name }) => name).join(' ')
  const lines = [
    '# fish completion of svc: svc completion fish | source',
    'complete -c svc -f',
    ...commands.map(
      ({ name, summary }) => `complete -c svc -n '__fish_use_subcommand' -a ${name} -d ${fishText(summary)}`,
    ),
    ...[...commands[0]!.flags, ...everywhere].map(flag =>
      fishFlag(`not __fish_seen_subcommand_from ${names}`, flag),
    ),
    ...commands.flatMap(command => {
      const condition = `__fish_seen_subcommand_from ${command.name}`
      const { word } = command
      const words =
        word?.choices !== undefined
          ? [`complete -c svc -n '${condition}' -a ${fishText(word.choices.join(' '))}`]
          : word?.name === 'FILE'
            ? [`complete -c svc -n '${condition}' -F`]
            : []
      return [...flagsOf(command).map(flag => fishFlag(condition, flag)), ...words]
    }),
  ]
  return `${lines.join('\n')}\n`
}

function fishFlag(condition: string, flag: Flag): string {
  const { name, short, summary, value, choices } = flag
  const parts = [`complete -c svc -n '${condition}' -l ${name}`]
  if (short !== undefined) parts.push(`-s ${short}`)
  if (value !== undefined) parts.push('-r')
  if (choices !== undefined) parts.push(`-a ${fishText(choices.join(' '))}`)
  else if (isFile(flag)) parts.push('-F')
  else if (isDirectory(flag)) parts.push("-a '(__fish_complete_directories)'")
  parts.push(`-d ${fishText(summary)}`)
  return parts.join(' ')
}

function fishText(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
