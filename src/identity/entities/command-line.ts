import { cutEnd } from '../../foundation/lib/cut-text.ts'

const redacted = '[REDACTED]'
/** Maximum length of the displayed line, in UTF-16 units. */
const maxLength = 1_024
const maxArguments = 256
/** Includes characters that break a line or change its direction, so that no name displays as another. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu
const secretName =
  /pass(wd|word|phrase|code|in|out)?\d?$|pwd\d?$|(^|[-_.])pw\d?$|secret|token|credential|api[-_.]?key|(access|private|account|shared|signing|encryption)[-_.]?key|^auth|[-_.]auth$|authorization|cookie|session[-_.]?id|signature$|^sas$|^key$|dsn$/i

/**
 * Secrets recognisable by form: tokens of GitHub, GitLab, Slack, Stripe, npm, Vault, Google and AWS, by their published
 * prefixes, and JSON Web Tokens (RFC 7519), which begin with a base64 object.
 */
const token =
  /\b(?:gh[pousr]_\w{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}|xox[abeprs]-[\w-]{10,255}|[rs]k_(?:live|test)_\w{16,255}|npm_\w{36}|hv[sb]\.[\w-]{20,255}|AIza[\w-]{35}|A(?:KIA|SIA)[0-9A-Z]{16}|eyJ[\w-]{10,1500}\.eyJ[\w-]{2,1500}(?:\.[\w-]{0,1500})?)/g

/** Options whose value is `user:password` (curl, wget and similar) or `user%password` (Samba). */
const userOption = /^(-u|--user|--proxy-user|-U)$/

/** One-letter options whose value is a secret, either the next word or appended. */
const letters: ReadonlyMap<string, string> = new Map(
  Object.entries({
    p: 'sshpass mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh docker podman nerdctl skopeo buildah helm oc az cf 7z 7za 7zr rar unrar mysqlsh',
    a: 'redis-cli valkey-cli keydb-cli',
    P: 'sqlcmd bcp isql osql tsql ipmitool zip unzip mosquitto_pub mosquitto_sub mosquitto_rr',
    w: 'ldapsearch ldapadd ldapmodify ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn',
    k: 'openssl',
    K: 'openssl',
    A: 'snmpget snmpwalk snmpset snmpbulkwalk snmpgetnext snmptrap snmpbulkget',
    X: 'snmpget snmpwalk snmpset snmpbulkwalk snmpgetnext snmptrap snmpbulkget',
  }).flatMap(([letter, programs]) =>
    programs.split(' ').map(program => [`${program} -${letter}`, letter] as const),
  ),
)
/** These accept a password only appended to the option; the option alone prompts for it. */
const mysql = /^(mysql|mariadb)/
/** `-p` of these is a password only after `login`: `docker run -p 80:80` names a port. */
const withPorts = /^(docker|podman|nerdctl|buildah|helm|oc|az|cf)$/
/** Programs with options in `letters`, which may follow others on the same line (`sudo`, `docker exec`). */
const programs = new Set([...letters.keys()].map(each => each.slice(0, each.indexOf(' '))))
/** Oracle tools take `user/password@place`. */
const oracle = /^(sqlplus|sqlldr|rman|expdp|impdp|exp|imp)$/

/**
 * Command line for display, at most 1 KiB. Values that an option, variable, header or URL marks as secret, and
 * well-known tokens, become `[REDACTED]`; unprintable characters become `?`. Unmarked secrets cannot be recognised.
 */
export function commandLine(args: readonly string[]): string {
  // A program that wrote a title over its arguments has all words in one argument.
  const words = args.length === 1 ? args[0]!.slice(0, 4 * maxLength).split(' ') : args.slice(0, maxArguments)
  const context: Context = { program: '', before: '', isLogin: false }
  const shown: string[] = []
  let length = 0
  for (let i = 0; i < words.length && length <= maxLength; i++) {
    const word = shownWord(words[i]!.slice(0, 2 * maxLength), context)
    shown.push(word)
    length += word.length + 1
  }
  return cutEnd(shown.join(' ').replace(unprintable, '?'), maxLength)
}

/** State from the words so far. */
interface Context {
  /** Last known program. */
  program: string
  before: string
  isLogin: boolean
}

/** Redacts a word, which may be a whole command for a shell. */
function shownWord(word: string, context: Context): string {
  const shown = shownOne(word, context)
  follow(word, context)
  if (shown !== word || !word.includes(' ')) return shown
  const inner: Context = { program: '', before: '', isLogin: false }
  const pieces: string[] = []
  let quote = ''
  for (const piece of word.split(' ')) {
    if (quote !== '') {
      // Rest of a quoted secret with spaces.
      if (piece.endsWith(quote)) quote = ''
      continue
    }
    const of = shownOne(piece, inner)
    follow(piece, inner)
    pieces.push(of)
    const [, first = '', rest = ''] = /^[^'"]*(['"])(.*)$/.exec(piece) ?? []
    if (of !== piece && first !== '' && !rest.includes(first)) quote = first
  }
  return pieces.join(' ')
}

function follow(word: string, context: Context): void {
  const name = word.slice(word.lastIndexOf('/') + 1)
  if (context.before === '' || programs.has(name) || mysql.test(name) || oracle.test(name)) {
    context.program = name
    context.isLogin = false
  }
  context.isLogin ||= word === 'login'
  context.before = word
}

function shownOne(word: string, { program, before, isLogin }: Context): string {
  if (before.startsWith('-') && !before.includes('=')) {
    const option = before.replace(/^-+/, '')
    if (userOption.test(before) && /[:%]/.test(word))
      return `${word.slice(0, word.search(/[:%]/))}:${redacted}`
    if (secretName.test(option) && !word.startsWith('-')) return redacted
    if (isLetter(program, before, isLogin) && word !== '') return redacted
  }
  if (/^(Bearer|Basic)$/i.test(before)) return redacted
  // `nmcli device wifi connect NAME password SECRET`
  if (/^(password|passphrase)$/.test(before) && program !== before) return redacted
  if (mysql.test(program) && /^-p./.test(word)) return `-p${redacted}`
  if (program === 'curl' && /^-u[^:]+:/.test(word)) return `${word.slice(0, word.indexOf(':'))}:${redacted}`
  const letter = word.slice(0, 2)
  if (word.length > 2 && isLetter(program, letter, isLogin)) return `${letter}${redacted}`
  if (oracle.test(program)) {
    const slash = /^[^/@=-][^/@=]*\//.exec(word)
    if (slash !== null) return `${slash[0]}${redacted}`
  }
  const at = word.search(/[=:]/)
  const name = word.slice(0, Math.max(0, at)).replace(/^(--?|-D)/, '')
  if (at > 0 && /^[\w.-]+$/.test(name) && secretName.test(name)) return `${word.slice(0, at + 1)}${redacted}`
  const bare = word.replace(token, redacted)
  return withoutNamed(bare.replace(/(\w:\/\/[^\s/:@]{0,256}:)[^\s/]{1,512}@/g, `$1${redacted}@`))
}

function isLetter(program: string, option: string, isLogin: boolean): boolean {
  return letters.has(`${program} ${option}`) && (isLogin || !withPorts.test(program))
}

const named = /([\w.-]{1,64})(=|":\s?"?)/g
const value = /[^&;,"\s]*/y

/** Values may contain named values themselves: `--set=db.password=…`. */
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
