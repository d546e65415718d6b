import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { until } from '../../../test/helpers/program.ts'
import { ProcessFiles } from './process-files.ts'
import { RuntimeVersions } from './runtime-version.ts'

const scratch = mkdtempSync(join(tmpdir(), 'svc-runtime-'))
const children: ChildProcess[] = []
after(async () => {
  for (const child of children) {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  rmSync(scratch, { recursive: true })
})

const files = new ProcessFiles('/proc')
const versions = new RuntimeVersions(files)

/** A program that runs, by the name of its executable. */
async function running(executable: string, ...args: string[]): Promise<number> {
  const child = spawn(executable, args, { stdio: 'ignore', env: { ...process.env, NODE_OPTIONS: '' } })
  children.push(child)
  await until('it runs its program', 60_000, () => files.link(child.pid!, 'exe').endsWith(executable))
  return child.pid!
}

test('the version of Node.js is told by the header beside it', { skip: withoutHeader() }, () => {
  const real = files.link(process.pid, 'exe')
  assert.equal(versions.of(process.pid, real), process.versions.node)
})

function withoutHeader(): string | false {
  return existsSync(join(process.execPath, '../../include/node/node_version.h'))
    ? false
    : 'needs the headers of Node.js beside it'
}

test('a name or a directory that has the version tells it without another look', () => {
  const check = (executable: string, want: string) =>
    assert.equal(versions.of(0, executable), want, executable)
  check('/usr/bin/python3.11', '3.11')
  check('/root/.pyenv/versions/3.11.4/bin/python3.11', '3.11.4')
  check('/opt/uv/cpython-3.12.1-linux-x86_64-gnu/bin/python3.12', '3.12.1')
  check('/opt/other-1.2.3/bin/python3.12', '3.12')
  check('/usr/sbin/php-fpm8.2', '8.2')
  check('/usr/bin/ruby3.1', '3.1')
  check('/home/a/.nvm/versions/node/v20.11.0/bin/node', '20.11.0')
  check('/opt/nginx-1.25.3/sbin/nginx', '')
  check('/opt/shop/1.2.3/bin/python', '')
  check('/opt/node-shop-1.2.3/lib/runtime/python', '')
  check('/usr/bin/python3', '')
  check('', '')
})

test('the version of Java is told by the release file', async () => {
  const home = join(scratch, 'jdk')
  mkdirSync(join(home, 'bin'), { recursive: true })
  copyFileSync('/bin/sleep', join(home, 'bin/java'))
  execFileSync('chmod', ['755', join(home, 'bin/java')])
  writeFileSync(join(home, 'release'), 'IMPLEMENTOR="X"\nJAVA_VERSION="17.0.9"\nOS_NAME="Linux"\n')
  const java = join(home, 'bin/java')
  const pid = await running(java, '600')
  assert.equal(versions.of(pid, java), '17.0.9')
  rmSync(join(home, 'release'))
  assert.equal(versions.of(pid, java), '')
  // A container may put anything there.
  execFileSync('mkfifo', [join(home, 'release')])
  assert.equal(new RuntimeVersions(files).of(pid, java), '')
  rmSync(join(home, 'release'))
  symlinkSync('/dev/zero', join(home, 'release'))
  assert.equal(new RuntimeVersions(files).of(pid, java), '')
  rmSync(join(home, 'release'))
  writeFileSync(join(home, 'release'), `JAVA_VERSION="${'1'.repeat(1_000)}"\n`)
  assert.equal(new RuntimeVersions(files).of(pid, java), '')
})

test('what is mounted or linked beside a program is left alone', () => {
  const proc = join(scratch, 'proc')
  const node = '/opt/node/bin/node'
  const include = join(proc, '7/root/opt/node/include')
  const header = [1, 2, 3].map(
    (number, i) => `#define NODE_${['MAJOR', 'MINOR', 'PATCH'][i]}_VERSION ${number}`,
  )
  const check = (mounts: readonly string[], want: string) => {
    const lines = mounts.map(each => `1 0 0:1 / ${each.replace(' ', ' rw - ')} none rw`)
    writeFileSync(join(proc, '7/mountinfo'), `${lines.join('\n')}\n`)
    assert.equal(new RuntimeVersions(new ProcessFiles(proc)).of(7, node), want, mounts.join())
  }
  mkdirSync(join(include, 'node'), { recursive: true })
  writeFileSync(join(proc, '7/exe'), '')
  writeFileSync(join(include, 'node/node_version.h'), `${header.join('\n')}\n`)
  check(['/ ext4'], '1.2.3')
  check(['/ nfs4'], '')
  check(['/ ext4', '/opt/node/include fuse.sshfs'], '')
  check(['/ ext4', '/opt/node/include/node nfs4'], '')
  check(['/ ext4', '/opt/nod nfs4'], '1.2.3')
  renameSync(include, `${include}.real`)
  symlinkSync(`${include}.real`, include)
  check(['/ ext4'], '')
})

test('whatever stands beside a runtime, its version is one or none', () => {
  const procDir = mkdtempSync(join(scratch, 'proc-'))
  const beside = join(procDir, '7/root/opt/jdk')
  mkdirSync(beside, { recursive: true })
  mkdirSync(join(procDir, '7'), { recursive: true })
  writeFileSync(join(procDir, '7/mountinfo'), '1 0 8:1 / / rw - ext4 /dev/sda rw\n')
  const word = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('JAVA_VERSION="', '"\n', '21.0.2', 'x'.repeat(5_000)),
  )
  let number = 0
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), words => {
      writeFileSync(join(beside, 'release'), words.join(''))
      // Another program, for the answer is remembered by it.
      const program = join(procDir, `program-${number++}`)
      writeFileSync(program, '')
      rmSync(join(procDir, '7/exe'), { force: true })
      symlinkSync(program, join(procDir, '7/exe'))
      const found = new RuntimeVersions(new ProcessFiles(procDir)).of(7, '/opt/jdk/bin/java')
      assert.match(found, /^[\w.+-]{0,64}$/)
    }),
  )
  writeFileSync(join(beside, 'release'), 'JAVA_VERSION="21.0.2"\n')
  assert.equal(new RuntimeVersions(new ProcessFiles(procDir)).of(7, '/opt/jdk/bin/java'), '21.0.2')
})
