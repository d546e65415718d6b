// The Debian part of an image: the C and C++ libraries of the runtime, trusted certificates, and licences. No shell,
// and nothing else that starts a program.
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { unpackedPackages } from '../debian-packages.ts'
import { type Architecture, names } from './release.ts'

/** Packages whose libraries are in the image. */
export const libraries: readonly string[] = ['libc6', 'libstdc++6', 'libgcc-s1']
/** Libraries of the runtime, and those required by GPU drivers that are mounted into a container. */
const wanted = [
  ...['libc.so.6', 'libm.so.6', 'libdl.so.2', 'libpthread.so.0', 'librt.so.1', 'libresolv.so.2'],
  ...['libnss_dns.so.2', 'libnss_files.so.2', 'libstdc++.so.6', 'libgcc_s.so.1'],
]
/** Mount points and writable directories: a read-only root cannot get them later. */
const folders = [
  ...['dev', 'proc', 'run/svc', 'sys', 'tmp', 'var/lib/svc'],
  ...['etc/ssl/certs', 'usr/bin', 'usr/lib64'],
]
/** Files below /etc. */
const accounts = {
  passwd: 'root:x:0:0:root:/root:/usr/sbin/nologin\nsvc:x:65532:65532:svc:/var/lib/svc:/usr/sbin/nologin\n',
  group: 'root:x:0:\nsvc:x:65532:\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

/** Writes it into `root`, which is created. */
export function writeSystem(root: string, architecture: Architecture): void {
  const packages = [...libraries, 'ca-certificates', 'base-files']
  const from = unpackedPackages(
    'image',
    packages,
    architecture === process.arch ? {} : { architecture: names[architecture].debian },
  )
  if (from === undefined)
    throw new Error(`cannot unpack ${packages.join(', ')} for the image: apt-get cannot download them`)
  for (const name of folders) mkdirSync(join(root, name), { recursive: true })
  for (const name of ['bin', 'lib', 'lib64']) symlinkSync(join('usr', name), join(root, name))
  copyLibraries(from, root, names[architecture].triplet)
  for (const name of packages) copyInto(from, root, join('usr/share/doc', name, 'copyright'))
  copyInto(from, root, 'usr/share/common-licenses')
  const file = 'etc/ssl/certs/ca-certificates.crt'
  writeFileSync(join(root, file), authorities(join(from, 'usr/share/ca-certificates/mozilla')))
  for (const [name, text] of Object.entries(accounts)) writeFileSync(join(root, 'etc', name), text)
}

/** The loader has a second path, which programs refer to: /lib64/ld-linux-x86-64.so.2, /lib/ld-linux-aarch64.so.1. */
function copyLibraries(from: string, root: string, triple: string): void {
  const folder = join('usr/lib', triple)
  const loaders = readdirSync(join(from, folder)).filter(name => name.startsWith('ld-linux-'))
  for (const name of [...wanted, ...loaders]) copyInto(from, root, join(folder, name))
  for (const name of loaders) {
    const at = existsLink(join(from, 'usr/lib64', name)) ? 'usr/lib64' : 'usr/lib'
    symlinkSync(relative(at, join(folder, name)), join(root, at, name))
  }
}

/** Replaces links by their targets. */
function copyInto(from: string, root: string, path: string): void {
  cpSync(realpathSync(join(from, path)), join(root, path), { recursive: true })
}

/** As written by update-ca-certificates(8). */
function authorities(folder: string): string {
  return readdirSync(folder)
    .sort()
    .map(name => readFileSync(join(folder, name), 'utf8'))
    .join('')
}

function existsLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
