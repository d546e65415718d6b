// The kind of code and the package of a frame.

const kinds: Readonly<Record<string, readonly [title: string, series: number]>> = {
  native: ['native', 1],
  kernel: ['kernel', 2],
  v8js: ['JavaScript', 3],
  cpython: ['Python', 4],
  go: ['Go', 5],
  jvm: ['Java', 6],
  rust: ['Rust', 7],
  ruby: ['Ruby', 4],
  php: ['PHP', 7],
  perl: ['Perl', 6],
  dotnet: ['.NET', 5],
  beam: ['Erlang', 4],
  luajit: ['Lua', 3],
}

/** Title of a kind of code; '' if unknown. */
export function kindTitle(type: string): string {
  return kinds[type]?.[0] ?? type
}

/** Its colour, 1 to 8; 0: none. */
export function kindSeries(type: string): number {
  return type === '' ? 0 : (kinds[type]?.[1] ?? 8)
}

/** The package, module, library or program of a function; '' if unknown. */
export function packageOf(name: string, file: string, type: string): string {
  if (type === 'kernel') return 'kernel'
  if (type === 'go') return goPackage(name) || lastPart(file)
  if (type === 'jvm' || type === 'dotnet') return javaPackage(name) || lastPart(file)
  return installed(file) || (type === 'rust' ? rustCrate(name) : '') || folderOrLibrary(file)
}

/** `net/http` of `net/http.(*conn).serve`. */
function goPackage(name: string): string {
  const slash = name.lastIndexOf('/', name.includes('(') ? name.indexOf('(') : name.length)
  const dot = name.indexOf('.', slash + 1)
  return dot < 0 ? '' : name.slice(0, dot)
}

/** `com.shop` of `com.shop.Cart.add`. */
function javaPackage(name: string): string {
  const parts = name.split(/[.$(:]/)
  const until = parts.findIndex(part => /^[A-Z<]/.test(part))
  return parts.slice(0, until < 0 ? Math.max(1, parts.length - 1) : until).join('.')
}

function rustCrate(name: string): string {
  return /^<?([A-Za-z_]\w*)::/.exec(name)?.[1] ?? ''
}

/** From a file below a folder of packages: `node_modules/@scope/name`, `site-packages/name`, `gems/name-1.0`. */
function installed(file: string): string {
  for (const folder of ['/node_modules/', '/site-packages/', '/dist-packages/', '/gems/', '/vendor/']) {
    const at = `/${file}`.lastIndexOf(folder)
    if (at < 0) continue
    const [first = '', second = ''] = `/${file}`.slice(at + folder.length).split('/')
    return first.startsWith('@') ? `${first}/${second}` : first
  }
  return file.startsWith('node:') ? 'node' : ''
}

/** The name of a library or program; for a source file, its folder. */
function folderOrLibrary(file: string): string {
  const name = lastPart(file)
  if (!/\.(c|cc|cpp|cxx|h|hpp|rs|go|js|mjs|cjs|ts|py|rb|php|pl|lua|ex|erl|java|kt)$/.test(name)) return name
  const folder = file.slice(0, Math.max(0, file.length - name.length - 1))
  return lastPart(folder) || name
}

function lastPart(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1)
}
