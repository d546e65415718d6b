// Bundles src/main.ts into dist/svc.cjs, together with the symbol thread and the exports of the package. CommonJS,
// because `import 'node:http'` of an ES module costs 10 MB of memory on Node 22 and newer (measured), and because it
// also runs on Node 20.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { build } from 'esbuild'
import { bundleOptions, programs } from './bundle-options.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return 'unknown' // a source archive without .git
  }
}

const epoch = process.env.SOURCE_DATE_EPOCH
const built = (epoch ? new Date(Number(epoch) * 1000) : new Date()).toISOString().replace(/\.\d+Z$/, 'Z')
/** Exports of the package; no program of svc uses the file. */
const exported = [['src/foundation/model/security.ts', 'security.cjs']] as const
for (const [entry, name] of [...programs, ...exported])
  await build({
    entryPoints: [entry],
    outfile: `dist/${name}`,
    ...bundleOptions,
    define: {
      'import.meta.dirname': '__dirname',
      SVC_BUILD: JSON.stringify({ version, commit: commit(), built }),
    },
  })
