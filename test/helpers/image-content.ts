// An archive of an image, taken apart as its readers do.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

/** What Docker and the OCI call the configuration of an image. */
export interface ImageConfig {
  readonly architecture: string
  readonly os: string
  readonly config: Readonly<Record<string, unknown>>
  readonly rootfs: { readonly diff_ids: readonly string[] }
}

/** Unpacks all layers to `directory/root`; checks each digest and length, and that both indexes name the same. */
export function unpackImage(file: string, directory: string): ImageConfig {
  const layout = join(directory, 'layout')
  const root = join(directory, 'root')
  for (const each of [layout, root]) mkdirSync(each, { recursive: true })
  execFileSync('tar', ['-x', '-C', layout, '-f', file])
  const json = <T>(path: string) => JSON.parse(readFileSync(join(layout, path), 'utf8')) as T
  const read = ({ digest, size }: Descriptor): Buffer => {
    const bytes = readFileSync(join(layout, pathOf(digest)))
    assert.equal(digestOf(bytes), digest)
    assert.equal(bytes.length, size)
    return bytes
  }
  assert.deepEqual(json('oci-layout'), { imageLayoutVersion: '1.0.0' })
  const index = json<{ readonly manifests: readonly Descriptor[] }>('index.json')
  const manifests = index.manifests.map(each => read(each).toString())
  assert.equal(new Set(manifests).size, 1)
  const manifest = JSON.parse(manifests[0]!) as Manifest
  const config = JSON.parse(read(manifest.config).toString()) as ImageConfig
  const [docker] = json<[{ readonly Config: string; readonly Layers: readonly string[] }]>('manifest.json')
  assert.equal(docker.Config, pathOf(manifest.config.digest))
  assert.deepEqual(
    docker.Layers,
    manifest.layers.map(({ digest }) => pathOf(digest)),
  )
  assert.equal(config.rootfs.diff_ids.length, manifest.layers.length)
  manifest.layers.forEach((layer, i) => {
    const tar = gunzipSync(read(layer))
    assert.equal(digestOf(tar), config.rootfs.diff_ids[i])
    execFileSync('tar', ['-x', '-p', '-C', root], { input: tar })
  })
  return config
}

/** Files that may be run, sorted. */
export function programsIn(root: string): string[] {
  const all = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return (
    all
      .filter(path => {
        const found = lstatSync(join(root, path))
        return found.isFile() && (found.mode & 0o111) !== 0
      })
      // The link /lib to /usr/lib is followed.
      .filter((path, _, paths) => !paths.includes(`usr/${path}`))
      .sort()
  )
}

function pathOf(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
