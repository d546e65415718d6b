import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { bundleOptions } from '../../tools/bundle-options.ts'

const root = resolve(import.meta.dirname, '../..')

/** The agent's program for a machine of its own, made in `directory`: its files by their paths there. */
export async function guestProgram(directory: string): Promise<Record<string, string>> {
  // The sources as they are now, in the one file that an emulated processor reads fast enough.
  const bundle = join(directory, 'svc.cjs')
  const about = JSON.stringify({ version: '0.0.0', commit: 'test', built: '2026-01-01T00:00:00Z' })
  const define = { 'import.meta.dirname': '__dirname', SVC_BUILD: about }
  await build({ entryPoints: [join(root, 'src/main.ts')], outfile: bundle, define, ...bundleOptions })
  return {
    '/etc': join(root, 'test/fixtures/systemd-guest'),
    '/opt/svc/bin/svc': join(root, 'bin/svc'),
    '/opt/svc/runtime/bin/node': process.execPath,
    '/opt/svc/dist/svc.cjs': bundle,
    '/opt/svc/dist/svc.node': join(root, 'dist/svc.node'),
    '/opt/svc/dist/svc-probe': join(root, 'dist/svc-probe'),
    '/opt/svc/dist/svc-decode': join(root, 'dist/svc-decode'),
  }
}
