// Bundles ui/ into dist/ui: each page is a module of its own, named by content, and every file is compressed in
// advance, so that the agent serves files as they are. Fails if the page exceeds the limits of budgets.json.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { pageWeights } from './page-weights.ts'

const to = 'dist/ui'
const { ui } = JSON.parse(readFileSync('budgets.json', 'utf8')) as {
  ui: { brotli_bytes: number; first_brotli_bytes: number }
}

rmSync(to, { recursive: true, force: true })
mkdirSync(to, { recursive: true })
const { outputFiles } = await build({
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
  write: false,
  logLevel: 'warning',
  legalComments: 'none',
})

function put(name: string, content: Uint8Array): void {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11 }
  writeFileSync(join(to, `${name}.br`), brotliCompressSync(content, { params }))
  writeFileSync(join(to, `${name}.gz`), gzipSync(content, { level: 9 }))
}

const named = (pattern: RegExp) =>
  outputFiles.map(({ path }) => basename(path)).find(name => pattern.test(name))!
const [script, style] = [named(/^main-.*\.js$/), named(/^main-.*\.css$/)]
for (const { path, contents } of outputFiles) {
  const name = basename(path)
  // The styles of pages are included in those of the entry; separately they are never loaded.
  if (!name.endsWith('.css') || name === style) put(name, contents)
}
const page = readFileSync('ui/index.html', 'utf8')
  .replace('{script}', `/ui/assets/${script}`)
  .replace('{style}', `/ui/assets/${style}`)
put('index.html', Buffer.from(page))

const { first, all } = pageWeights(to)
console.error(`setup: the page: ${first} bytes before any page, ${all} in all (brotli)`)
if (all > ui.brotli_bytes || first > ui.first_brotli_bytes) {
  console.error(
    `setup: error: the limits of the page are ${ui.first_brotli_bytes} and ${ui.brotli_bytes} bytes (budgets.json)`,
  )
  process.exitCode = 1
}
