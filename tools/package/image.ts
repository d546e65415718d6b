// The image: the program directory, Debian's C and C++ libraries for the runtime, and nothing that starts another
// program. Uses no registry.
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { run } from '../../src/program/cli/run.ts'
import type { Effort } from './debian-package.ts'
import { writeLauncher } from './image-launcher.ts'
import { libraries, writeSystem } from './image-system.ts'
import { writeOciArchive } from './oci-archive.ts'
import { manifest, names, timeText } from './release.ts'
import type { Tree } from './stage.ts'
import { paths, programDirectory, type SystemFiles } from './system-files.ts'

export interface ImageOptions {
  readonly tree: Tree
  /** From a package: licences and bill of materials apply to the image too. */
  readonly files: SystemFiles
  readonly directory: string
  readonly effort: Effort
}

const program = programDirectory.slice(1)

/** Writes `svc-VERSION-oci.tar`, with the processor's name if it differs from this machine's, and returns its path. */
export function writeImage({ tree, files, directory, effort }: ImageOptions): string {
  const { architecture, version, epoch } = tree
  const work = mkdtempSync(join(tmpdir(), 'svc-image-root-'))
  try {
    const at = (name: string) => join(work, name)
    writeSystem(at('system'), architecture)
    writeProgram(at('runtime'), at('program'), tree)
    for (const path of [paths.copyright, paths.bill]) writeInto(at('program'), path, files.get(path)!)
    const { debian } = names[architecture]
    const file = join(directory, `svc-${version}-oci${architecture === process.arch ? '' : `-${debian}`}.tar`)
    writeOciArchive(file, {
      names: [`svc:${version}`, 'svc:latest'],
      architecture: debian,
      epoch,
      effort,
      config: configOf(tree),
      layers: [
        { root: at('system'), comment: `Debian: ${libraries.join(', ')}, ca-certificates` },
        { root: at('runtime'), comment: `Node.js ${tree.node.version}` },
        { root: at('program'), comment: `svc ${version}` },
      ],
    })
    return file
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Default start of a container. User 0: added capabilities do not reach others. */
export const start = {
  User: '0:0',
  Env: ['PATH=/usr/bin'],
  Entrypoint: ['/usr/bin/svc'],
  Cmd: [run.name],
} as const

function configOf({ version, epoch }: Tree): Readonly<Record<string, unknown>> {
  return {
    ...start,
    WorkingDir: '/',
    StopSignal: 'SIGTERM',
    Labels: {
      'org.opencontainers.image.title': 'svc',
      'org.opencontainers.image.description': manifest().description,
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': manifest().license,
      'org.opencontainers.image.created': timeText(epoch),
    },
  }
}

/** The runtime is a separate layer: it stays when only svc changes. */
function writeProgram(runtime: string, rest: string, { directory: tree, architecture }: Tree): void {
  cpSync(join(tree, 'runtime'), join(runtime, program, 'runtime'), { recursive: true })
  const skipped = ['runtime', 'bin'].map(name => join(tree, name))
  cpSync(tree, join(rest, program), { recursive: true, filter: path => !skipped.includes(path) })
  for (const name of ['usr/bin', join(program, 'bin')]) mkdirSync(join(rest, name), { recursive: true })
  writeLauncher(join(rest, program, 'bin/svc'), architecture)
  symlinkSync('../lib/svc/bin/svc', join(rest, 'usr/bin/svc'))
}

function writeInto(root: string, path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
}
