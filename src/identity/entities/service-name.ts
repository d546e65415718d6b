/** Data about a process from /proc. */
export interface ProcessFacts {
  /** The kernel's short name, at most 15 bytes. */
  readonly comm: string
  /** Path of the executable; '' if not readable. */
  readonly executable: string
  readonly args: readonly string[]
  /** Working directory; '' if not readable. */
  readonly cwd: string
}

export interface ServiceName {
  readonly name: string
  /** `process.runtime.name`; '' if unknown. */
  readonly runtime: string
  /** `telemetry.sdk.language` of the program; '' if unknown. */
  readonly language: string
  /** The name was set for OpenTelemetry: same priority as OTEL_SERVICE_NAME. */
  readonly given: boolean
}

/**
 * Names the service of a process after the script, module or archive that an interpreter runs, otherwise after the
 * executable. Generic names (`server.js`, `main.py`, `index.php`) are replaced by that of their directory.
 */
export function serviceName(facts: ProcessFacts): ServiceName {
  const file = baseName(facts.executable) || facts.comm
  const program = manyPrograms.has(file) ? appletOf(facts.args) || file : file
  for (const { pattern, runtime, language, script } of interpreters) {
    if (!pattern.test(program)) continue
    const name = script(facts.args.slice(1), facts) || titleOf(facts) || trimVersion(program)
    const given = language === 'java' && facts.args.some(arg => arg === `-Dotel.service.name=${name}`)
    return { name, runtime, language, given }
  }
  return { name: program || 'unknown', runtime: '', language: '', given: false }
}

/** Multi-call binaries: the program is the name used to call them, or the word after their own name. */
const boxes = new Set(['busybox', 'coreutils', 'toybox'])
/** Also those called only by other names: Debian's redis-server is a link. */
const manyPrograms = new Set([...boxes, 'redis-check-rdb', 'valkey-check-rdb'])

/** `httpd` in `/bin/httpd -f` and in `busybox httpd -f`; login shells have a hyphen before the name. */
function appletOf([first = '', second = '']: readonly string[]): string {
  // Programs that write a title over their arguments: its first word is the program.
  const name = baseName(first.split(' ', 1)[0]!).replace(/^-/, '')
  const applet = boxes.has(name) ? baseName(second) : name
  return /^[\w.[-]{1,32}$/.test(applet) && !applet.startsWith('-') ? applet : ''
}

interface Interpreter {
  readonly pattern: RegExp
  readonly runtime: string
  readonly language: string
  /** Name of the script that the interpreter runs with these arguments; '' if unknown. */
  script(args: readonly string[], facts: ProcessFacts): string
}

/** Options of Node.js 24 that take the next argument unless they have `=` (those of V8 never do). */
const nodeValued = new RegExp(
  `^(-r|-C|--(${[
    'require|import|(experimental-)?loader|conditions|env-file(-if-exists)?|title|watch-path|watch-kill-signal',
    'allow-fs-(read|write)|input-type|icu-data-dir|openssl-config|tls-(cipher-list|keylog)|unhandled-rejections',
    '(cpu|heap)-prof-(dir|interval|name)|diagnostic-dir|report-(dir|filename|signal)|redirect-warnings',
    'heapsnapshot-(near-heap-limit|signal)|trace-event-(categories|file-pattern)|trace-require-module',
    'disable-(proto|warning)|dns-result-order|max-http-header-size|max-old-space-size-percentage|v8-pool-size',
    'network-family-autoselection-attempt-timeout|secure-heap(-min)?|security-revert|snapshot-blob|use-largepages',
    'localstorage-file|inspect-publish-uid|experimental-(config-file|package-map|sea-config)|build-snapshot-config',
  ].join('|')}))$`,
)

const interpreters: readonly Interpreter[] = [
  {
    pattern: /^(node|nodejs)(-?\d+)?$/,
    runtime: 'nodejs',
    language: 'nodejs',
    script: scriptBehind({
      valued: nodeValued,
      none: /^(-e|-p|-pe|-i|--eval|--print|--interactive|--test|--run)$/,
    }),
  },
  {
    pattern: /^(deno|bun)$/,
    runtime: '',
    language: 'nodejs',
    script: scriptBehind({ valued: /^(-c|--config|-r|--preload)$/, none: /^(-e|eval|repl)$/, skip: /^run$/ }),
  },
  { pattern: /^python[\d.]*$/, runtime: 'cpython', language: 'python', script: pythonName },
  { pattern: /^pypy[\d.]*$/, runtime: 'pypy', language: 'python', script: pythonName },
  { pattern: /^java$/, runtime: '', language: 'java', script: javaName },
  {
    pattern: /^(ruby|jruby|truffleruby)[\d.]*$/,
    runtime: '',
    language: 'ruby',
    script: scriptBehind({ valued: /^-[IrCE]$/, none: /^-e$/ }),
  },
  { pattern: /^php-fpm[\d.]*$/, runtime: '', language: 'php', script: () => 'php-fpm' },
  {
    pattern: /^php[\d.]*$/,
    runtime: '',
    language: 'php',
    script: scriptBehind({ valued: /^-[cdtSz]$/, none: /^-[rRB]$/ }),
  },
  {
    pattern: /^dotnet$/,
    runtime: '',
    language: 'dotnet',
    script: scriptBehind({ valued: /^--(fx-version|depsfile|runtimeconfig)$/, none: /^$/, skip: /^exec$/ }),
  },
  { pattern: /^beam(\.smp)?$/, runtime: '', language: 'erlang', script: erlangName },
  {
    pattern: /^perl[\d.]*$/,
    runtime: '',
    language: '',
    script: scriptBehind({ valued: /^-I$/, none: /^-[eE]$/ }),
  },
]

/** Names of files that do not identify a program. */
const genericNames = new Set(
  [
    'app',
    'application',
    'artisan',
    'asgi',
    'bootstrap',
    'cli',
    'console',
    'entry',
    'entrypoint',
    'index',
    'init',
  ].concat(
    [
      'launcher',
      'main',
      'manage',
      'program',
      'rackup',
      'rails',
      'run',
      'server',
      'service',
      'start',
      'startup',
    ],
    ['worker', 'wsgi', '__init__', '__main__'],
  ),
)

/** Names of directories that do not identify it either; their parent may. */
const genericDirectories = new Set(
  [
    'app',
    'bin',
    'build',
    'cmd',
    'code',
    'current',
    'dist',
    'html',
    'lib',
    'out',
    'public',
    'release',
    'scripts',
  ].concat(['server', 'src', 'target', 'web', 'www']),
)

/** System directories: their parents name no programs. */
const systemDirectories = new Set([
  '',
  'etc',
  'home',
  'local',
  'mnt',
  'node_modules',
  'opt',
  'root',
  'sbin',
  'share',
  'srv',
  'tmp',
  'usr',
  'var',
])

/** Servers that run the application named by an argument `module:object`. */
const pythonServers = new Set(['daphne', 'granian', 'gunicorn', 'hypercorn', 'uvicorn', 'uwsgi'])

interface Options {
  /** Options whose value is the next argument. */
  readonly valued: RegExp
  /** Arguments that mean there is no script. */
  readonly none: RegExp
  /** Words before the script that are not options. */
  readonly skip?: RegExp
}

/** First argument that is not an option. */
function scriptBehind(options: Options): Interpreter['script'] {
  return (args, facts) => {
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]!
      if (options.none.test(arg)) return ''
      if (options.valued.test(arg)) i++
      else if (!arg.startsWith('-') && options.skip?.test(arg) !== true) return scriptName(arg, facts)
    }
    return ''
  }
}

function pythonName(args: readonly string[], facts: ProcessFacts): string {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '-c') return ''
    if (arg === '-m') return pythonModule(args[i + 1] ?? '', args.slice(i + 2), facts)
    if (arg === '-W' || arg === '-X') i++
    else if (!arg.startsWith('-')) return pythonModule(baseName(arg), args.slice(i + 1), facts, arg)
  }
  return ''
}

/** Name of a module, or of the application that it serves. `script` is the path if it was started by path. */
function pythonModule(module: string, args: readonly string[], facts: ProcessFacts, script = ''): string {
  if (pythonServers.has(module)) {
    const application = args.find(arg => /^[A-Za-z_][\w.]*:[A-Za-z_]\w*$/.test(arg))
    if (application === undefined) return module
    const parts = application.split(':')[0]!.split('.')
    return parts.find(part => !genericNames.has(part)) ?? (directoryName(facts.cwd) || module)
  }
  if (script !== '') return scriptName(script, facts)
  return genericNames.has(module) ? directoryName(facts.cwd) || module : module
}

function javaName(args: readonly string[]): string {
  for (const property of ['-Dotel.service.name=', '-Dspring.application.name=']) {
    const given = args.find(arg => arg.startsWith(property))?.slice(property.length) ?? ''
    if (given !== '') return given
  }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '-jar') return archiveName(args[i + 1] ?? '')
    if (arg === '-m' || arg === '--module') return className((args[i + 1] ?? '').split('/').at(-1)!)
    if (
      /^(-cp|-classpath|--class-path|-p|--module-path|--add-modules|--add-opens|--add-exports|--add-reads)$/.test(
        arg,
      )
    )
      i++
    else if (!arg.startsWith('-') && !arg.startsWith('@')) return className(arg)
  }
  return ''
}

/** `shop-1.2.3-SNAPSHOT.jar` becomes `shop`. */
function archiveName(path: string): string {
  return baseName(path)
    .replace(/\.[jw]ar$/, '')
    .replace(/[-_]v?\d[\w.+-]*$/, '')
}

/** Class without its package; a generic class is replaced by the nearest specific part of the package. */
function className(path: string): string {
  const parts = path.split('.')
  return parts.findLast(part => !genericNames.has(part.toLowerCase())) ?? parts.at(-1)!
}

function erlangName(args: readonly string[]): string {
  const at = args.findIndex(arg => arg === '-sname' || arg === '-name')
  return at < 0 ? '' : (args[at + 1] ?? '').split('@')[0]!
}

/** Name of a script file, or of its directory if the file name is generic. */
function scriptName(script: string, facts: ProcessFacts): string {
  const name = baseName(script).replace(/\.(c?js|mjs|[cm]?ts|jsx|tsx|pyc?|rb|ru|php|phar|pl|dll|exe)$/, '')
  if (name !== '' && name !== '.' && name !== '..' && !genericNames.has(name.toLowerCase())) return name
  const slash = script.lastIndexOf('/')
  const directory = slash < 0 ? '' : script.slice(0, slash)
  const path = script.startsWith('/') ? directory : `${facts.cwd}/${directory}`
  return directoryName(path) || name
}

/** Last specific part of a path; '' if there is none. */
function directoryName(path: string): string {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '.' && part !== '') parts.push(part)
  }
  for (const part of parts.reverse()) {
    if (systemDirectories.has(part)) return ''
    if (!genericDirectories.has(part)) return part
  }
  return ''
}

/** Name in a title that the program wrote over its arguments (`puma 6.4 (tcp://…)`). */
function titleOf(facts: ProcessFacts): string {
  const title = facts.args.length === 1 ? facts.args[0]! : ''
  const word = /^[A-Za-z][\w-]*(?=[ :])/.exec(title)
  return word === null ? '' : word[0]
}

function baseName(path: string): string {
  // At most the length of a file name: patterns applied to it may take quadratic time.
  return path.slice(path.lastIndexOf('/') + 1).slice(0, 255)
}

/** `python3.11` becomes `python3`, a name that survives updates. */
function trimVersion(program: string): string {
  return program.replace(/\.\d+$/, '')
}
