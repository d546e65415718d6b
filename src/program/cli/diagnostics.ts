import { accessSync, constants, linkSync, lstatSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { WriteStream } from 'node:tty'
import type { LoadedConfig } from '../../config/index.ts'
import { errorText } from '../../foundation/lib/logger.ts'
import { ExitCode, exitCodeOf, StartError } from '../../foundation/lib/start-error.ts'
import { type Command, configFlag, outputFlag, urlFlag } from './arguments.ts'
import { withProgress } from './progress.ts'
import { say, writeToStdout } from './terminal.ts'

export const diagnostics: Command = {
  name: 'diagnostics',
  summary: 'write a support bundle without secrets, as a .tar.gz on standard output',
  flags: [
    outputFlag,
    { name: 'force', summary: 'overwrite FILE; allow output to a terminal' },
    configFlag,
    urlFlag,
  ],
  async run(args) {
    const output = args.value('output')
    const force = args.has('force')
    // Before the collection, which takes seconds.
    if (output === undefined) checkStandardOutput(force)
    else checkFile(output, force)
    const { configurationOf } = await import('./configuration.ts')
    const loaded = configurationOf(args)
    const { archive, words } = await collect(loaded, args.value('url'))
    if (output === undefined) await writeToStdout(archive, 'the bundle')
    else writeFile(output, archive, force)
    say(`${words}${output === undefined ? '' : ` in ${output}`}. Review it before you send it.\n`)
    endSoon()
    return ExitCode.ok
  },
}

async function collect(loaded: LoadedConfig, url: string | undefined) {
  // Loaded on demand: the agent does not need it.
  const [
    { secretValues },
    { findAgent },
    { agentParts },
    { hostParts },
    { ownParts },
    { makeBundle },
    { scrubFor },
  ] = await Promise.all([
    import('../../config/index.ts'),
    import('../client/agent-client.ts'),
    import('./diagnostics/agent-parts.ts'),
    import('./diagnostics/host-parts.ts'),
    import('./diagnostics/own-parts.ts'),
    import('./diagnostics/bundle.ts'),
    import('./diagnostics/scrub.ts'),
  ])
  const settings = loaded.config.self_telemetry
  const { client, tried } = await findAgent({ settings, url, env: process.env })
  const token = process.env.SVC_TOKEN ?? ''
  const scrub = scrubFor([...secretValues(loaded), token])
  for (const { address, why } of tried) say(scrub.text(`no agent at ${address}: ${why}\n`))
  say(client ? `querying the agent at ${client.address}\n` : 'no agent answers: collecting data without it\n')
  const agent = { answered: client !== undefined, address: client?.address ?? '', attempts: tried }
  const parts = [...agentParts(client, settings.path), ...ownParts(loaded), ...hostParts(client?.port)]
  const { archive, manifest } = await withProgress('collecting', makeBundle(parts, agent, scrub))
  const { files, missing } = manifest
  const gaps = missing.length > 0 ? `, ${missing.length} missing (reasons in manifest.json)` : ''
  return { archive, words: `${files.length} files${gaps}, ${archive.length} bytes` }
}

function checkStandardOutput(force: boolean): void {
  if ((process.stdout as Partial<WriteStream>).isTTY !== true || force) return
  throw new StartError(
    'cannot write the bundle to a terminal: it is a .tar.gz; use --output FILE, or redirect standard output',
    ExitCode.usage,
  )
}

function checkFile(path: string, force: boolean): void {
  const failed = (why: string, code: ExitCode) => new StartError(`cannot write ${path}: ${why}`, code)
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (there && !there.isFile()) throw failed('not a regular file', ExitCode.usage)
  if (there && !force)
    throw failed('the file exists; choose another name, or overwrite it with --force', ExitCode.usage)
  try {
    accessSync(dirname(path), constants.W_OK)
  } catch (error) {
    throw failed(errorText(error), exitCodeOf(error))
  }
}

/** Written beside, then moved into place: never visible half-written, and private. */
function writeFile(path: string, archive: Buffer, force: boolean): void {
  const partial = `${path}.${process.pid}.partial`
  try {
    writeFileSync(partial, archive, { flag: 'wx', mode: 0o600, flush: true })
    // Fails if the name is taken by now.
    if (force) renameSync(partial, path)
    else linkSync(partial, path)
  } catch (error) {
    throw new StartError(`cannot write ${path}: ${errorText(error)}`, exitCodeOf(error), error)
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Ends although the system's resolver may still wait for a name server. */
function endSoon(): void {
  setTimeout(() => process.exit(), 50).unref()
}
