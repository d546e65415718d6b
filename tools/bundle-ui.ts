// Bundles ui/ into dist/ui: each page a module of its own, names by content, and every file compressed beforehand, so
// that the agent serves bytes as they lie there. Fails where the page weighs more than budgets.json allows.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const to = 'dist/ui'
const { ui } = JSON.parse(readFileSync('budgets.json', 'utf8')) as {
  ui: { brotli_bytes: number; first_brotli_bytes: number }
}

rmSync(to, { recursive: true, force: true })
mkdirSync(to, { recursive: true })
const { outputFiles, metafile } = await build({
  entryPoints: ['ui/main.tsx'],
  outdir: to,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  minify: true,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  metafile: true,
  write: false,
  logLevel: 'warning',
  legalComments: 'none',
})

/** Bytes on the wire, by name. */
const weights = new Map<string, number>()
function put(name: string, content: Uint8Array): void {
  const packed = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  writeFileSync(join(to, `${name}.br`), packed)
  writeFileSync(join(to, `${name}.gz`), gzipSync(content, { level: 9 }))
  weights.set(name, packed.length)
}

const named = (pattern: RegExp) =>
  outputFiles.map(({ path }) => basename(path)).find(name => pattern.test(name))!
const [script, style] = [named(/^main-.*\.js$/), named(/^main-.*\.css$/)]
for (const { path, contents } of outputFiles) {
  const name = basename(path)
  // The styles of pages are in those of the entry already; by themselves nobody loads them.
  if (!name.endsWith('.css') || name === style) put(name, contents)
}
const page = readFileSync('ui/index.html', 'utf8')
  .replace('{script}', `/ui/assets/${script}`)
  .replace('{style}', `/ui/assets/${style}`)
put('index.html', Buffer.from(page))

// What is loaded before any page: the entry with all that it imports, and not later.
const first = new Set(['index.html', style])
const visit = (path: string) => {
  if (first.has(basename(path))) return
  first.add(basename(path))
  for (const { path: next, kind } of metafile.outputs[path]!.imports)
    if (kind === 'import-statement') visit(next)
}
visit(join(to, script))
const sum = (names: Iterable<string>) =>
  [...names].reduce((total, name) => total + (weights.get(name) ?? 0), 0)
const [whole, begin] = [sum(weights.keys()), sum(first)]
console.error(`setup: the page: ${begin} bytes to begin with, ${whole} in all (brotli)`)
if (whole > ui.brotli_bytes || begin > ui.first_brotli_bytes) {
  console.error(
    `setup: error: the page may weigh ${ui.first_brotli_bytes} and ${ui.brotli_bytes} bytes (budgets.json)`,
  )
  process.exitCode = 1
}
