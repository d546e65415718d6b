import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { svcProgram } from '../../../test/helpers/program-under-test.ts'
import { hasTracefs } from '../../../test/helpers/tracefs.ts'

const skip = withoutBpf
const directory = mkdtempSync(join(tmpdir(), 'svc-confined-'))
after(() => rmSync(directory, { recursive: true }))
chmodSync(directory, 0o755) // everybody may read it
// Whether the kernel's addresses are told to everybody is a matter of this host's settings.
writeFileSync(
  join(directory, 'config.yaml'),
  'self_telemetry: {listen: "127.0.0.1:0"}\nagent: {profiling: {include_kernel: false}}\n',
)

const asNobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

/** What a check says of which nothing is known, since it had no time. */
const late = /timed out after|no time left in this scrape|no answer within/

/** Runs `svc doctor` where `wrapper` puts it, again while a check of it is late. Returns what it says. */
function doctor(wrapper: readonly string[], code: number): string {
  const [program, ...args] = [...wrapper, process.execPath, svcProgram, 'doctor']
  const env = { PATH: process.env.PATH, SVC_CONFIG_FILE: join(directory, 'config.yaml') }
  const run = () => spawnSync(program!, args, { env, cwd: '/', encoding: 'utf8' })
  let ended = run()
  for (let more = 2; more > 0 && late.test(ended.stdout.replaceAll(/\s+/g, ' ')); more--) ended = run()
  const { status, stdout, stderr } = ended
  assert.deepEqual([status, stderr], [code, ''], stdout)
  return stdout
}

/** Checks the lines that say `state`: each begins with a name and has a detail. */
function check(text: string, state: string, want: readonly RegExp[]): void {
  const lines = text.split('\n').filter(line => line.startsWith(`  ${state} `))
  assert.equal(lines.length, want.length, lines.join('\n'))
  for (const [i, pattern] of want.entries()) assert.match(lines[i]!, pattern)
}

test('for a user without rights', { skip }, () => {
  const text = doctor(asNobody, 1)
  check(text, 'missing', [
    /eBPF programs +not permitted: CAP_BPF and CAP_PERFMON missing$/,
    /perf events +not permitted: CAP_BPF and CAP_PERFMON missing$/,
  ])
  check(text, 'limited', [
    /processes of others .*cannot be read: exe, cwd, environ/,
    /files of processes .*cannot be opened: /,
    /log positions .*EACCES/,
    /admin socket .*EACCES/,
  ])
  check(text, 'unknown', [
    /kernel memory/,
    /ring buffer/,
    /capture programs/,
    /profile programs/,
    /connection programs/,
    /process programs/,
    /host programs/,
  ])
  assert.match(text, /^ +Loss: traces and request metrics\n +Fix, one of:\n/m)
  assert.match(text, /^ +systemd +AmbientCapabilities=CAP_BPF CAP_PERFMON$/m)
  assert.match(text, /^ +container +docker run --user=0 --cap-add=BPF --cap-add=PERFMON$/m)
  assert.match(text, /^ +kubernetes +securityContext: \{.*\[BPF, PERFMON\]\}\}$/m)
  assert.match(text, /^4 limited, 2 missing, 7 unknown\. All other checks passed\.$/m)
})

test('where the kernel hides its types', { skip }, () => {
  const hidden = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', 'sh']
  const text = doctor(hidden, 1)
  const tracing = hasTracefs ? [] : [/system call tracepoints +there is no tracepoint/]
  check(text, 'missing', [/BTF +\/sys\/kernel\/btf\/vmlinux does not exist/, ...tracing])
  check(text, 'unknown', [
    /socket tracepoints/,
    /capture programs +cannot be checked: .*BTF/,
    /profile programs +cannot be checked: .*BTF/,
    /connection programs +cannot be checked: .*BTF/,
    /process programs +cannot be checked: .*BTF/,
    /host programs +cannot be checked: .*BTF/,
  ])
  check(text, 'limited', [])
})

test('in a pid namespace of its own', { skip }, () => {
  const text = doctor(['unshare', '-pf', '--mount-proc'], 1)
  check(text, 'missing', [])
  check(text, 'limited', [
    /host pid namespace .*its own pid namespace/,
    /files of processes .*its own pid namespace/,
  ])
  check(text, 'unknown', [/processes of others +no process of another user is visible/])
})

test('with all rights', { skip }, () => {
  const text = doctor(['env'], 0)
  for (const state of ['missing', 'limited', 'unknown']) check(text, state, [])
  assert.match(text, /^All checks passed\.$/m)
})
