// svc as tests start it: the bundle, which is what users run and what starts fast. Where the lines that tests run are
// counted (`tools/test --coverage`), its sources.
import { join } from 'node:path'

export const root = join(import.meta.dirname, '..', '..')

/** What the runtime is to run. */
export const svcProgram: string = join(
  root,
  process.env.TEST_FROM_SOURCES === '1' ? 'src/main.ts' : 'dist/svc.cjs',
)

/** This process's environment without what it sets for svc, but with what the runner of the tests set for all. */
export function cleanEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const ours =
    /^(NODE_(OPTIONS|COMPILE_CACHE|DISABLE_COMPILE_CACHE|V8_COVERAGE)|TEST_(GROUP|FAULTS|FILE|OWNS))$/
  const kept = Object.entries(process.env).filter(
    ([name]) => ours.test(name) || !/^(SVC|OTEL|NODE|TEST)_/.test(name),
  )
  return { ...(Object.fromEntries(kept) as Record<string, string>), ...more }
}
