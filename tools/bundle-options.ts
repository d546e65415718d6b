// Options for bundling sources, for the shipped bundle and for those of tests.
import type { BuildOptions } from 'esbuild'

export const bundleOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  minifyWhitespace: true,
  minifySyntax: true,
  minifyIdentifiers: false, // V8's profiles and stacks show them; short ones save no memory
  lineLimit: 160, // the runtime prints the whole line of an uncaught error
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies BuildOptions

/** The shipped programs, and their bundles in dist/. */
export const programs = [
  ['src/main.ts', 'svc.cjs'],
  ['src/signals/profiles/worker.ts', 'profiling-worker.cjs'],
  ['src/program/documents/try-worker.ts', 'try-worker.cjs'],
] as const
