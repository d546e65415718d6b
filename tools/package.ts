// Builds every artefact to ship, in build/package. The same commit gives the same bytes ($SOURCE_DATE_EPOCH). --arm64:
// those for 64-bit ARM, on any machine.
import { mkdirSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { stageArm64 } from './package/arm64.ts'
import { commandExists } from './package/command.ts'
import { writeImage } from './package/image.ts'
import { root, sourceEpoch } from './package/release.ts'
import { writeRpmPackage } from './package/rpm-package.ts'
import { sizesText } from './package/sizes.ts'
import { stagePackage, writeChecksums, writePackages } from './package/write.ts'

const say = (line: string) => console.error(`package: ${line}`)
const directory = join(root, 'build/package')
const stage = join(root, 'build/package-root')
const ownArchitecture = process.arch === 'arm64' ? 'arm64' : 'x64'
for (const each of [directory, stage]) rmSync(each, { recursive: true, force: true })
mkdirSync(directory, { recursive: true })
const epoch = sourceEpoch()
const staged = process.argv.includes('--arm64')
  ? await stageArm64(stage, epoch)
  : await stagePackage({ directory: stage, architecture: ownArchitecture, dist: join(root, 'dist'), epoch })
const effort = 'best'
const artefacts = writePackages(staged, directory, effort)
if (commandExists('rpmbuild')) artefacts.push(writeRpmPackage({ ...staged, directory, effort }))
else say('no .rpm: rpmbuild not found (Debian package rpm)')
artefacts.push(writeImage({ ...staged, directory, effort }))
artefacts.push(writeChecksums(directory, artefacts))
for (const line of sizesText(staged)) say(line)
rmSync(stage, { recursive: true })
for (const file of artefacts) say(`${basename(file)} ${(statSync(file).size / 1e6).toFixed(1)} MB`)
