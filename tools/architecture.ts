// The rules of the architecture, held by check-architecture.ts: who may import whom, and what no file may hold.

/** What an area of src/ may import besides itself: what stands on its right. An area without a row is a fault. */
export const allow: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  model: ['lib'],
  runtime: ['lib'],
  schema: ['lib'],
  config: ['lib', 'model', 'schema', 'collectors', 'processors', 'protocols', 'scraping'],
  kernel: ['lib', 'model'],
  protocols: ['lib', 'model'],
  processors: ['lib', 'model', 'schema'],
  exporters: ['lib', 'model'],
  tracing: ['lib', 'model'],
  entities: ['lib', 'model', 'kernel'],
  pipeline: ['lib', 'model', 'exporters'],
  exposition: ['lib', 'model'],
  probes: ['lib', 'model', 'kernel', 'tracing'],
  collectors: ['lib', 'model', 'kernel', 'schema'],
  unwinders: ['lib', 'model', 'kernel'],
  profiling: ['lib', 'model', 'kernel', 'unwinders'],
  discovery: ['lib', 'model', 'kernel'],
  logs: ['lib', 'model', 'kernel'],
  gpu: ['lib', 'model', 'kernel'],
  scraping: ['lib', 'model', 'schema', 'discovery'],
  window: ['lib', 'model'],
  api: ['lib', 'model', 'schema', 'config', 'pipeline'],
  agent: ['*'],
  'agent.ts': ['*'],
  cli: ['*'],
  'main.ts': ['*'],
}

/** What files of ui/ may import of src/: what server and page agree on. */
export const shared = /^src\/api\/ui\/(documents|pages)\.ts$/

/** Areas of units: one does not import another. What they share stands in lib, or beside them and not in the list. */
export const units =
  /^src\/(protocols|processors|exporters|probes|collectors|unwinders|discovery|scraping\/sources)\//

/** Modules that source files (not tests) may not import. */
export const bans: readonly [where: RegExp, module: RegExp, why: string][] = [
  [/^src\/(protocols|model)\//, /^node:/, 'this area is pure'],
  [/^src\/processors\//, /^node:(net|http|fs)/, 'a processor reaches nothing outside'],
  [/^src\/(?!kernel\/child\.ts$)/, /^node:child_process$/, 'only src/kernel/child.ts spawns'],
]

/** Text that no file may hold, comments included. */
const code = /^(src|bpf|native|ui)\/(?!.*\.test\.ts$)/
/** Areas that keep names of others; those of single connections and targets are counted with them. */
const caches =
  /^src\/(api|collectors|discovery|kernel|probes|processors|profiling|protocols|scraping|unwinders)\/(?!.*\.test\.ts$|amqp\/channel\.ts|nats\/waiting\.ts|resource-table\.ts)/
export const texts: readonly [where: RegExp, text: RegExp, rule: string, why: string][] = [
  [code, /\b(placeholder|for now|not implemented|TODO|FIXME|XXX)\b/i, 'words', 'finish it or leave it out'],
  [
    /^(src|test|tools|bench|ui)\/.*\.tsx?$/,
    /^ +private (?!constructor)/m,
    'private',
    'write #name: private at run time as well',
  ],
  [code, /(?<![\w.'])fetch\(|new WebSocket\(/, 'globals', 'loads 10 MB of undici: use node:http'],
  [
    caches,
    /(?<!\b(?:small|counted)\(\s*)\bnew (?:BoundedMap|Interner)\b/,
    'memory',
    'have its bytes counted: put small(…) or counted(…) around it (src/lib/small-tables.ts)',
  ],
  [/./, /(?<![\w.*-])\/(work|Users)\/\w+/, 'paths', 'a path of one machine'],
  [/./, /\b(registry\.(npmjs|yarnpkg)|deb\.debian)\.\w+/, 'hosts', "which one is the machine's choice"],
]

/** What everything else is reached from, with the exports of the package. */
// The worker is a program of its own; btf.ts is for tools/gen-bpf.ts.
export const entries = [
  'src/main.ts',
  'ui/main.tsx',
  'src/profiling/worker.ts',
  'src/agent/ui/try-worker.ts',
  'src/api/types.ts',
  'src/kernel/btf.ts',
]
