// The command line of the replaced exporter, from arguments to exit code.

import { build } from '../../../foundation/lib/build.ts'
import { errorText, type Logger } from '../../../foundation/lib/logger.ts'
import { ExitCode, StartError } from '../../../foundation/lib/start-error.ts'
import { giveBackMemory } from '../../../kernel/give-back.ts'
import { print, say } from '../terminal.ts'
import { UsageError } from './flag-words.ts'
import { ExporterFlags, type ExporterSettings } from './flags.ts'
import { manualText, usageText, versionText } from './help.ts'
import { exporterLog } from './log.ts'

/** Time after which what only the start needed is given back: after a first scrape, for those that come often. */
const startedMs = 10_000

/** Resolves after printing help and the like; as a server, the process ends here by a signal. */
export async function runExporter(argv: readonly string[]): Promise<ExitCode> {
  const flags = new ExporterFlags()
  let settings: ExporterSettings
  try {
    const given = flags.parse(argv)
    const asked = (['help', 'help-man', 'version'] as const).find(name => given.has(name))
    if (asked !== undefined) {
      const texts = { help: usageText, 'help-man': manualText, version: versionText }
      print(texts[asked](flags.all.values()))
      return ExitCode.ok
    }
    settings = given.settings()
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    say(`svc node-exporter: error: ${error.message}, try --help\n`)
    return ExitCode.general
  }
  // A collector that hangs in the kernel must not keep the process alive.
  process.exit(await serve(settings, exporterLog(settings.logLevel, settings.logFormat)))
}

async function serve(settings: ExporterSettings, log: Logger): Promise<ExitCode> {
  const { version, commit } = build()
  log.info('Starting node_exporter', { version: `(version=${version}, branch=svc, revision=${commit})` })
  endOnBugs(log)
  const signal = new Promise<string>(resolve => {
    for (const name of ['SIGTERM', 'SIGINT']) process.once(name, resolve)
  })
  // Files are reloaded automatically; and Node would open its debugger on the second.
  for (const name of ['SIGHUP', 'SIGUSR1']) process.on(name, () => log.debug('ignored', { signal: name }))
  try {
    const { startExporter } = await import('./serve.ts')
    const exporter = await startExporter(settings, log)
    setTimeout(() => giveBackMemory(true), startedMs).unref()
    log.info('Stopping', { signal: await signal })
    await exporter.close()
    return ExitCode.ok
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    log.error(errorText(error))
    return ExitCode.general
  }
}

/** An uncaught error leaves an undefined state: the supervisor restarts it. */
function endOnBugs(log: Logger): void {
  const end = (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    log.error('the exporter failed and is stopping; please report this', { error: text })
    process.exit(ExitCode.general)
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}
