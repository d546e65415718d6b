// The rules of the architecture, checked by check-architecture.ts: allowed imports, and texts that no file may contain.

/**
 * What an area of src/ may import besides itself: areas, or groups of them, in earlier rows. An area is a folder or
 * file with a row here; it includes everything below it without a row of its own. The order follows the flow of data. A
 * file without an area is a fault, and no row allows everything.
 */
export const allow: Readonly<Record<string, readonly string[]>> = {
  'foundation/lib': [],
  'foundation/model': ['foundation/lib'],
  'foundation/schema': ['foundation/lib'],
  'foundation/runtime': ['foundation/lib'],
  kernel: ['foundation/lib', 'foundation/model'],
  'identity/entities': ['foundation/lib', 'foundation/model', 'kernel'],
  'identity/discovery': ['foundation/lib', 'foundation/model', 'kernel'],
  'signals/traces/protocols': ['foundation/lib', 'foundation/model'],
  'signals/traces/tracing': ['foundation/lib', 'foundation/model'],
  'signals/capture': ['foundation/lib', 'foundation/model', 'kernel', 'signals/traces/tracing'],
  'signals/profiles/unwinders': ['foundation/lib', 'foundation/model', 'kernel'],
  'signals/profiles': ['foundation/lib', 'foundation/model', 'kernel', 'signals/profiles/unwinders'],
  'signals/metrics/collectors': ['foundation/lib', 'foundation/model', 'foundation/schema', 'kernel'],
  'signals/metrics/exposition': ['foundation/lib', 'foundation/model'],
  'signals/metrics/gpu': ['foundation/lib', 'foundation/model', 'kernel'],
  'signals/metrics/scraping': [
    'foundation/lib',
    'foundation/model',
    'foundation/schema',
    'identity/discovery',
  ],
  'signals/logs': ['foundation/lib', 'foundation/model', 'kernel'],
  'pipeline/processors': ['foundation/lib', 'foundation/model', 'foundation/schema'],
  'pipeline/exporters': ['foundation/lib', 'foundation/model'],
  pipeline: ['foundation/lib', 'foundation/model', 'pipeline/exporters'],
  'pipeline/trial': ['foundation/lib', 'foundation/model', 'pipeline/exporters', 'pipeline/processors'],
  config: ['foundation', 'signals/metrics', 'signals/traces/protocols', 'pipeline/processors'],
  'view/window': ['foundation/lib', 'foundation/model', 'pipeline/exporters'],
  'view/api': ['foundation', 'pipeline', 'config'],
  'program/agent': ['foundation', 'kernel', 'identity', 'signals', 'pipeline', 'config', 'view'],
  'program/subsystems': [
    'foundation',
    'kernel',
    'identity',
    'signals',
    'pipeline',
    'config',
    'view',
    'program/agent',
  ],
  'program/client': ['foundation', 'config'],
  'program/doctor': [
    'foundation',
    'kernel',
    'identity',
    'signals',
    'pipeline',
    'config',
    'view/api',
    'program/agent',
    'program/client',
  ],
  'program/documents': [
    'foundation',
    'kernel',
    'identity',
    'signals',
    'pipeline',
    'config',
    'view',
    'program/agent',
    'program/subsystems',
    'program/doctor',
  ],
  'program/cli': [
    'foundation',
    'kernel',
    'identity',
    'signals',
    'pipeline',
    'config',
    'view/api',
    'program/agent',
    'program/client',
    'program/doctor',
    'program/agent.ts',
  ],
  // Assembles the agent.
  'program/agent.ts': [
    'foundation/lib',
    'pipeline',
    'view/api',
    'program/agent',
    'program/subsystems',
    'program/documents',
  ],
  'main.ts': ['foundation/lib', 'program/cli'],
}

/** What files of ui/ may import from src/: the contract of server and page. */
export const shared = /^src\/view\/api\/ui\/(documents|pages)\.ts$/

/** Areas of units: one does not import another. Shared code is in lib, or beside them and not in the list. */
export const units =
  /^src\/(signals\/(capture|traces\/protocols|profiles\/unwinders|metrics\/collectors|metrics\/scraping\/sources)|identity\/discovery|pipeline\/(processors|exporters))\//

/** Modules that source files (not tests) may not import. */
export const bans: readonly [where: RegExp, module: RegExp, why: string][] = [
  [/^src\/(signals\/traces\/protocols|foundation\/model)\//, /^node:/, 'this area is pure'],
  [/^src\/pipeline\/processors\//, /^node:(net|http|fs)/, 'a processor has no access to the outside'],
  [/^src\/(?!kernel\/child\.ts$)/, /^node:child_process$/, 'only src/kernel/child.ts spawns'],
]

/** Texts that no file may contain, including comments. */
const code = /^(src|bpf|native|ui)\/(?!.*\.test\.ts$)/
/** Areas with caches keyed by foreign names; state of single connections and targets is counted with them. */
const caches =
  /^src\/(view\/api|identity\/discovery|kernel|signals\/(capture|profiles|traces\/protocols|metrics\/(collectors|scraping))|pipeline\/processors)\/(?!.*(?:\.test|amqp\/channel|nats\/waiting|resource-table)\.ts$)/
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
    'count its bytes: wrap it in small(…) or counted(…) (src/foundation/lib/small-tables.ts)',
  ],
  [/./, /(?<![\w.*-])\/(work|Users)\/\w+/, 'paths', 'a machine-specific path'],
  [
    /./,
    /\b(registry\.(npmjs|yarnpkg)|deb\.debian)\.\w+/,
    'hosts',
    'registries and mirrors are configured on the machine',
  ],
]

/** Entry points from which everything else must be reachable, including the exports of the package. */
// The worker is a program of its own; btf.ts is for tools/gen-bpf.ts.
export const entries = [
  'src/main.ts',
  'ui/main.tsx',
  'src/signals/profiles/worker.ts',
  'src/program/documents/try-worker.ts',
  'src/view/api/types.ts',
  'src/kernel/btf.ts',
]
