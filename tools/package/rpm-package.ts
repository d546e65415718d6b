// Builds the .rpm with rpmbuild from the same staged root as the .deb.

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { output } from './command.ts'
import type { Effort } from './debian-package.ts'
import { newestSymbols } from './elf.ts'
import { rpmScripts } from './maintainer-scripts.ts'
import { manifest, names, packageVersion } from './release.ts'
import { linkedFiles, type Tree } from './stage.ts'
import { configuration, paths as installed, programDirectory } from './system-files.ts'

/** zsh uses another directory on rpm systems. */
const zshCompletion = installed.zsh
const zshPlace = '/usr/share/zsh/site-functions/_svc'

interface RpmOptions {
  readonly root: string
  /** Paths of its files and links, sorted. */
  readonly paths: readonly string[]
  readonly tree: Tree
  readonly directory: string
  readonly effort: Effort
}

/** Writes the package and returns its path. */
export function writeRpmPackage({ root, paths, tree, directory, effort }: RpmOptions): string {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-rpm-'))
  try {
    const spec = join(scratch, 'svc.spec')
    writeFileSync(spec, specFile(root, paths, tree, effort))
    const folders = ['BUILD', 'BUILDROOT', 'RPMS', 'SOURCES', 'SPECS', 'SRPMS']
    for (const name of folders) mkdirSync(join(scratch, name))
    output(
      'rpmbuild',
      ['-bb', '--target', names[tree.architecture].rpm, '--define', `_topdir ${scratch}`, spec],
      {
        env: { SOURCE_DATE_EPOCH: String(tree.epoch), HOME: scratch },
      },
    )
    const built = output('find', [join(scratch, 'RPMS'), '-name', '*.rpm']).trim()
    const file = join(directory, basename(built))
    // The scratch folder may be on another file system.
    output('cp', [built, `${file}.part`])
    renameSync(`${file}.part`, file)
    return file
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function specFile(root: string, paths: readonly string[], tree: Tree, effort: Effort): string {
  const { description, license } = manifest()
  const programs = linkedFiles(tree)
  const needs = [
    `libc.so.6(GLIBC_${newestSymbols(programs, 'GLIBC')})(64bit)`,
    `libstdc++.so.6(GLIBCXX_${newestSymbols(programs, 'GLIBCXX')})(64bit)`,
    'libgcc_s.so.1()(64bit)',
  ]
  const own = paths.map(path => (path === zshCompletion ? zshPlace : path))
  // The files are final: rpm must not strip, compress or scan them.
  return `%global __os_install_post %{nil}
%global debug_package %{nil}
%global _build_id_links none
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _buildhost localhost
%global _binary_payload ${effort === 'best' ? 'w15' : 'w1'}.zstdio
Name: svc
Version: ${packageVersion(tree.version)}
Release: 1
Summary: ${description.replace(/\.$/, '')}
License: ${license}
AutoReqProv: no
${needs.map(each => `Requires: ${each}`).join('\n')}
Requires(post): /usr/sbin/useradd

%description
${description} The data goes to an OTLP receiver and to a live page. The package contains its own runtime.

%install
cp -a '${root}/.' '%{buildroot}'
mkdir -p '%{buildroot}${dirname(zshPlace)}'
mv '%{buildroot}${zshCompletion}' '%{buildroot}${zshPlace}'
find '%{buildroot}' -type d -exec touch -h -d '@${tree.epoch}' '{}' +

%files
%defattr(-,root,root,-)
${foldersOf(paths)
  .map(each => `%dir "${each}"`)
  .join('\n')}
${own.map(path => `${path === configuration ? '%config(noreplace) ' : ''}"${path}"`).join('\n')}

${Object.entries(rpmScripts)
  .map(([name, text]) => `%${name}\n${text}`)
  .join('\n')}`
}

/** Folders owned by svc, which rpm leaves on the host unless they are listed. */
function foldersOf(paths: readonly string[]): string[] {
  const ours = [programDirectory, dirname(configuration), dirname(installed.copyright)]
  const found = new Set<string>()
  for (const path of paths)
    for (let at = dirname(path); ours.some(top => `${at}/`.startsWith(`${top}/`)); at = dirname(at))
      found.add(at)
  return [...found].sort()
}
