const redacted = '[REDACTED]'
/** Of the line that is shown, in UTF-16 units. */
const maxLength = 1_024
const maxArguments = 256
const secretName =
  /pass(wd|word|phrase|code)?$|pwd$|secret|token|credential|api[-_.]?key|(access|private|account|shared|signing|encryption)[-_.]?key|^auth|[-_.]auth$|authorization|cookie|session[-_.]?id|signature$|^sas$|^key$|dsn$/i

/** Options whose value is `user:password`: curl, wget and their kind. */
const userOption = /^(-u|--user|--proxy-user|-U)$/

/**
 * A command line for people: values that look secret by the option, variable, header or part of a URL that they stand
 * with read `[REDACTED]`, control characters `?`; cut after 1 KiB. A secret that nothing announces cannot be known.
 */
export function commandLine(args: readonly string[]): string {
  // A program that wrote a title over its arguments has all words in one.
  const words = args.length === 1 ? args[0]!.slice(0, 4 * maxLength).split(' ') : args.slice(0, maxArguments)
  const program = words[0]?.slice(words[0].lastIndexOf('/') + 1) ?? ''
  const shown: string[] = []
  let length = 0
  for (let i = 0; i < words.length && length <= maxLength; i++) {
    const word = shownWord(words[i]!.slice(0, 2 * maxLength), i === 0 ? '' : words[i - 1]!, program)
    shown.push(word)
    length += word.length + 1
  }
  const line = shown.join(' ').replace(/\p{Cc}/gu, '?')
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line
}

function shownWord(word: string, before: string, program: string): string {
  if (before.startsWith('-') && !before.includes('=')) {
    const option = before.replace(/^-+/, '')
    if (userOption.test(before) && word.includes(':'))
      return `${word.slice(0, word.indexOf(':'))}:${redacted}`
    if (secretName.test(option) && !word.startsWith('-')) return redacted
  }
  if (/^(Bearer|Basic)$/i.test(before)) return redacted
  if (/^(mysql|mariadb)/.test(program) && /^-p./.test(word)) return `-p${redacted}`
  const at = word.search(/[=:]/)
  const name = word.slice(0, Math.max(0, at)).replace(/^(--?|-D)/, '')
  if (at > 0 && /^[\w.-]+$/.test(name) && secretName.test(name)) return `${word.slice(0, at + 1)}${redacted}`
  return withoutNamed(word.replace(/(\w:\/\/[^\s/:@]{0,256}:)[^\s/]{1,512}@/g, `$1${redacted}@`))
}

const named = /([\w.-]{1,64})(=|":\s?"?)/g
const value = /[^&;,"\s]*/y

/** What a value holds may have a name of its own: `--set=db.password=…`. */
function withoutNamed(word: string): string {
  let shown = ''
  let at = 0
  for (const { 0: all, 1: name, index } of word.matchAll(named)) {
    if (index < at || !secretName.test(name!)) continue
    const from = index + all.length
    value.lastIndex = from
    const to = from + value.exec(word)![0].length
    if (to === from) continue
    shown += word.slice(at, from) + redacted
    at = to
  }
  return shown + word.slice(at)
}
