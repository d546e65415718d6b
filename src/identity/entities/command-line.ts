const redacted = '[REDACTED]'
/** Of the line that is shown, in UTF-16 units. */
const maxLength = 1_024
const maxArguments = 256
/** Also what turns the direction of a line, or breaks it: nobody's name is to read as another's. */
const unprintable = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu
const secretName =
  /pass(wd|word|phrase|code|in|out)?\d?$|pwd\d?$|(^|[-_.])pw\d?$|secret|token|credential|api[-_.]?key|(access|private|account|shared|signing|encryption)[-_.]?key|^auth|[-_.]auth$|authorization|cookie|session[-_.]?id|signature$|^sas$|^key$|dsn$/i

/**
 * Tokens that say what they are: of GitHub, GitLab, Slack, Stripe, npm, Vault, Google and AWS, by their published prefixes,
 * and JSON Web Tokens (RFC 7519), which begin with an object in base64.
 */
const token =
  /\b(?:gh[pousr]_\w{20,255}|github_pat_\w{20,255}|glpat-[\w-]{16,255}|xox[abeprs]-[\w-]{10,255}|[rs]k_(?:live|test)_\w{16,255}|npm_\w{36}|hv[sb]\.[\w-]{20,255}|AIza[\w-]{35}|A(?:KIA|SIA)[0-9A-Z]{16}|eyJ[\w-]{10,1500}\.eyJ[\w-]{2,1500}(?:\.[\w-]{0,1500})?)/g

/** Options whose value is `user:password`: curl, wget and their kind; of Samba `user%password`. */
const userOption = /^(-u|--user|--proxy-user|-U)$/

/** Options of one letter whose value is a secret, as the next word or right behind them. */
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
/** Of these the value can only stand right behind the option; alone it asks for the password. */
const mysql = /^(mysql|mariadb)/
/** `docker run -p 80:80` names a port. Only these words of such programs mean a login. */
const withPorts = /^(docker|podman|nerdctl|buildah|helm|oc|az|cf)$/
/** Programs to whom others hand over: what they start has options of its own. */
const programs = new Set([...letters.keys()].map(each => each.slice(0, each.indexOf(' '))))
/** Oracle's: `user/password@place`. */
const oracle = /^(sqlplus|sqlldr|rman|expdp|impdp|exp|imp)$/

/**
 * A command line for people: values that look secret by the option, variable, header or part of a URL that they stand
 * with, and tokens of well-known kinds read `[REDACTED]`, characters that cannot be shown `?`; cut after 1 KiB. A secret that
 * nothing announces cannot be known.
 */
export function commandLine(args: readonly string[]): string {
  // A program that wrote a title over its arguments has all words in one.
  const words = args.length === 1 ? args[0]!.slice(0, 4 * maxLength).split(' ') : args.slice(0, maxArguments)
  const context: Context = { program: '', before: '', isLogin: false }
  const shown: string[] = []
  let length = 0
  for (let i = 0; i < words.length && length <= maxLength; i++) {
    const word = shownWord(words[i]!.slice(0, 2 * maxLength), context)
    shown.push(word)
    length += word.length + 1
  }
  const line = shown.join(' ').replace(unprintable, '?')
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line
}

/** What the words so far say about the next. */
interface Context {
  /** The last one that is a program that is known. */
  program: string
  before: string
  isLogin: boolean
}

/** A word, which may be a whole command for a shell. */
function shownWord(word: string, context: Context): string {
  const shown = shownOne(word, context)
  follow(word, context)
  if (shown !== word || !word.includes(' ')) return shown
  const inner: Context = { program: '', before: '', isLogin: false }
  const pieces: string[] = []
  let quote = ''
  for (const piece of word.split(' ')) {
    if (quote !== '') {
      // The rest of a secret that has spaces in it.
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
