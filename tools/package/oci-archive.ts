// An image as one tar without a registry: an OCI layout (image-layout.md of the specification, 1.1), with the
// manifest.json that Docker before 25 reads. The same content makes the same bytes.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Effort } from './debian-package.ts'
import { timeText } from './release.ts'

export interface Layer {
  /** Folder with the layer's content. */
  readonly root: string
  /** Description for `docker history`. */
  readonly comment: string
}

export interface OciImage {
  /** `name:tag`, after loading. */
  readonly names: readonly string[]
  /** Its name in Debian and Go. */
  readonly architecture: string
  /** Seconds since 1970: time of all files and of the image. */
  readonly epoch: number
  readonly effort: Effort
  /** Docker's configuration of the container: `Entrypoint`, `Env`, `Labels` and so on. */
  readonly config: Readonly<Record<string, unknown>>
  /** Lowest first. */
  readonly layers: readonly Layer[]
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const types = 'application/vnd.oci.image'

/** Writes the archive to `file`. */
export function writeOciArchive(file: string, image: OciImage): void {
  const own = mkdtempSync(join(tmpdir(), 'svc-image-'))
  try {
    const layout = new Layout(own)
    const created = timeText(image.epoch)
    const layers = image.layers.map(({ root, comment }) => {
      const tar = tarOf(root, image.epoch)
      return {
        comment,
        diff: digestOf(tar),
        blob: layout.blob(
          `${types}.layer.v1.tar+gzip`,
          gzipSync(tar, { level: image.effort === 'fast' ? 1 : 9 }),
        ),
      }
    })
    const config = layout.json(`${types}.config.v1+json`, {
      created,
      architecture: image.architecture,
      os: 'linux',
      config: image.config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diff }) => diff) },
      history: layers.map(({ comment }) => ({ created, created_by: comment })),
    })
    const manifest = layout.json(`${types}.manifest.v1+json`, {
      schemaVersion: 2,
      mediaType: `${types}.manifest.v1+json`,
      config,
      layers: layers.map(({ blob }) => blob),
    })
    layout.file('oci-layout', { imageLayoutVersion: '1.0.0' })
    layout.file('index.json', {
      schemaVersion: 2,
      mediaType: `${types}.index.v1+json`,
      manifests: image.names.map(name => ({
        ...manifest,
        platform: { architecture: image.architecture, os: 'linux' },
        annotations: {
          'io.containerd.image.name': `docker.io/library/${name}`,
          'org.opencontainers.image.ref.name': name.split(':')[1],
        },
      })),
    })
    layout.file('manifest.json', [
      { Config: pathOf(config), RepoTags: image.names, Layers: layers.map(({ blob }) => pathOf(blob)) },
    ])
    writeFileSync(file, tarOf(own, image.epoch))
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

class Layout {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
    mkdirSync(join(directory, 'blobs/sha256'), { recursive: true })
  }

  blob(mediaType: string, content: Buffer): Descriptor {
    const descriptor = { mediaType, digest: digestOf(content), size: content.length }
    writeFileSync(join(this.#directory, pathOf(descriptor)), content)
    return descriptor
  }

  json(mediaType: string, document: unknown): Descriptor {
    return this.blob(mediaType, Buffer.from(JSON.stringify(document)))
  }

  file(name: string, document: unknown): void {
    writeFileSync(join(this.#directory, name), JSON.stringify(document))
  }
}

/** All of a folder, owned by root, sorted by name and with one time. */
function tarOf(folder: string, time: number): Buffer {
  const same = [
    '--sort=name',
    `--mtime=@${time}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--format=gnu',
  ]
  const names = readdirSync(folder).sort()
  const args = [...same, '--mode=u+rwX,go+rX,go-w', '-C', folder, '-c', '--', ...names]
  return execFileSync('tar', args, { env: { ...process.env, LC_ALL: 'C' }, maxBuffer: 2 ** 30 })
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

function pathOf({ digest }: Pick<Descriptor, 'digest'>): string {
  return `blobs/${digest.replace(':', '/')}`
}
