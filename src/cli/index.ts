import { diagnostics } from './diagnostics.ts'
import { doctor } from './doctor.ts'
import { nodeExporter } from './node-exporter.ts'
import { pipeline } from './pipeline.ts'
import { profile } from './profile.ts'
import { queue } from './queue.ts'
import { run } from './run.ts'
import { validate } from './validate.ts'
import { version } from './version.ts'

/** The first is meant where none is named. */
export const commands = [
  run,
  validate,
  doctor,
  diagnostics,
  nodeExporter,
  pipeline,
  profile,
  queue,
  version,
] as const
