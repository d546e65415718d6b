import type { Command } from './arguments.ts'
import { completionOf } from './completion.ts'
import { config } from './config.ts'
import { convert } from './convert.ts'
import { diagnostics } from './diagnostics.ts'
import { doctor } from './doctor.ts'
import { explain } from './explain.ts'
import { nodeExporter } from './node-exporter.ts'
import { pipeline } from './pipeline.ts'
import { profile } from './profile.ts'
import { queue } from './queue.ts'
import { run } from './run.ts'
import { status } from './status.ts'
import { tap } from './tap.ts'
import { top } from './top.ts'
import { ui } from './ui.ts'
import { validate } from './validate.ts'
import { version } from './version.ts'

/** The first is the default. */
export const commands: readonly Command[] = [
  run,
  ui,
  status,
  top,
  tap,
  explain,
  profile,
  doctor,
  diagnostics,
  config,
  validate,
  pipeline,
  queue,
  convert,
  nodeExporter,
  completionOf(() => commands),
  version,
]
