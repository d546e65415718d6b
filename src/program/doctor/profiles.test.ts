// owns: host
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { withoutBpf } from '../../../test/helpers/compile-bpf.ts'
import { withoutCall } from '../../../test/helpers/seccomp.ts'
import { loadConfig } from '../../config/index.ts'
import { type Finding, outcomeOf } from '../../kernel/need.ts'
import { debugFiles, profilePrograms, tableCache, tryProfilePrograms } from './profiles.ts'
import { kernelSymbols, perfRefusal, tryKernelSymbols } from './profiling-rights.ts'
import { table } from './table.ts'

const skip = withoutBpf
const directory = mkdtempSync(join(tmpdir(), 'svc-doctor-profiles-'))
after(() => rmSync(directory, { recursive: true }))

function configured(env: Record<string, string> = {}) {
  const nowhere = '/nonexistent'
  const loaded = loadConfig({ explicit: false, cwd: nowhere, systemFile: nowhere, env })
  assert.deepEqual(loaded.problems, [])
  return { loaded, timeoutMs: 1000 }
}

function nameOf(finding: Finding): string {
  return 'ok' in finding ? 'ok' : finding.fault
}

/** What is missing, limited or unknown in a process of its own that `wrapper` starts: name, state, fault, detail. */
function troubles(wrapper: readonly string[]): string[][] {
  const script = `
    import { examine } from ${JSON.stringify(import.meta.resolve('./examine.ts'))}
    import { loadConfig } from ${JSON.stringify(import.meta.resolve('../../config/index.ts'))}
    const loaded = loadConfig({ explicit: false, cwd: '/', systemFile: '/nonexistent', env: {} })
    console.log(JSON.stringify((await examine(loaded, { topic: 'profiles', isOfFile: true })).groups[0].checks))`
  const [program, ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', script]
  const output = execFileSync(program!, args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString()
  const checks: { name: string; state: string; fault: string; detail: string }[] = JSON.parse(output)
  return checks
    .filter(({ state }) => state !== 'ok' && state !== 'note')
    .map(({ name, state, fault, detail }) => [name, state, fault, detail])
}

const firstThree = (rows: readonly string[][]) => rows.map(row => row.slice(0, 3))

const untried = ['profile programs', 'unknown', 'untried']
const noRights = [
  ['perf events', 'missing', 'capabilities'],
  ['files of processes', 'limited', 'denied'],
]

test('each right that is not there is named, by what lacks it', { skip }, () => {
  const without = (...names: string[]) => [
    ...['setpriv', '--inh-caps=-all'],
    `--bounding-set=${names.map(name => `-${name}`).join(',')}`,
  ]
  const check = (names: string[], want: string[][], detail: RegExp) => {
    const found = troubles(without(...names))
    assert.deepEqual(firstThree(found), want)
    assert.match(found.map(row => row[3]).join('\n'), detail)
  }
  const files = noRights.slice(1)
  check(['sys_admin', 'perfmon'], [untried, noRights[0]!], /not permitted: CAP_PERFMON missing$/m)
  check(['sys_admin', 'checkpoint_restore'], files, /cannot be opened: CAP_CHECKPOINT_RESTORE missing$/)
})

test('for a user without rights nothing is made up', { skip }, () => {
  const found = troubles(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])
  // Whether addresses of the kernel are told to everybody is a matter of its settings.
  const withoutSymbols = found.filter(([name]) => name !== 'kernel symbols')
  assert.deepEqual(firstThree(withoutSymbols), [untried, ...noRights])
  assert.match(
    withoutSymbols[2]![3]!,
    /CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE and CAP_DAC_READ_SEARCH missing$/,
  )
})

test('with the capabilities that the table asks for, a user without any other right has all', {
  skip,
}, () => {
  const names = [...new Set(table.flatMap(each => each.capabilities ?? []))]
  const list = names.map(name => `+${name.toLowerCase()}`).join(',')
  const granted = [
    ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'],
    ...[`--inh-caps=${list}`, `--ambient-caps=${list}`],
  ]
  assert.deepEqual(troubles(granted), [])
})

test('namespaces and a seccomp filter are told apart', { skip }, () => {
  const check = (wrapper: readonly string[], want: string[][]) => {
    const found = troubles(wrapper).filter(([name]) => name !== 'kernel symbols')
    assert.deepEqual(firstThree(found), want)
  }
  check(
    ['unshare', '--user', '--map-root-user'],
    [untried, ['perf events', 'missing', 'user_namespace'], noRights[1]!],
  )
  check(withoutCall('perf_event_open'), [['perf events', 'missing', 'seccomp']])
  check(['unshare', '--pid', '--fork', '--mount-proc'], [['files of processes', 'limited', 'own']])
})

test('a kernel that cannot walk by tables is limited, and says what is lost', { skip }, () => {
  const found = tryProfilePrograms(true)
  assert.equal(nameOf(found), 'degraded')
  const { state, impact, hints, detail } = outcomeOf(profilePrograms, found)
  assert.equal(state, 'limited')
  assert.match(detail, /^stacks are unwound by frame pointers only: /)
  assert.match(impact!, /without frame pointers/)
  assert.match(hints!.kernel!, /lockdown/)
  assert.equal(nameOf(tryProfilePrograms()), 'ok')
})

/** A directory as /proc, in which svc has all capabilities unless told otherwise. */
function procWith(files: Readonly<Record<string, string>>): string {
  const proc = mkdtempSync(join(directory, 'proc-'))
  const all = {
    'self/status': 'CapEff:\t000001ffffffffff\nSeccomp:\t0\n',
    'self/uid_map': '0 0 4294967295\n',
    'sys/kernel/cap_last_cap': '40\n',
    ...files,
  }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(join(proc, name, '..'), { recursive: true })
    writeFileSync(join(proc, name), text)
  }
  return proc
}

test('why perf_event_open(2) was refused is read off the process', () => {
  const check = (code: string, files: Record<string, string>, want: string) =>
    assert.equal(nameOf(perfRefusal(code, 'cannot', procWith(files))), want)
  const level = 'sys/kernel/perf_event_paranoid'
  check('EACCES', { 'self/status': 'CapEff:\t0000000000000000\n', [level]: '4\n' }, 'capabilities')
  check('EACCES', { 'self/uid_map': '0 1000 1\n' }, 'user_namespace')
  check('EACCES', { [level]: '3\n' }, 'paranoid')
  check('EACCES', { [level]: '2\n' }, 'security_module')
  check('EACCES', {}, 'security_module')
  check('EPERM', { 'self/status': 'CapEff:\t000001ffffffffff\nSeccomp:\t2\n' }, 'seccomp')
  check('ENOSYS', {}, 'no_system_call')
  check('EMFILE', {}, 'refused')
})

test('addresses of the kernel that are hidden are told by what hides them', () => {
  const check = (files: Record<string, string>, want: string) =>
    assert.equal(nameOf(tryKernelSymbols(procWith(files))), want)
  const level = 'sys/kernel/kptr_restrict'
  const zeros = '0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n'
  check({ kallsyms: `${zeros}ffffffff81000000 T startup_64\n` }, 'ok')
  check({ kallsyms: zeros, [level]: '2\n' }, 'restricted')
  check({ kallsyms: zeros, [level]: '1\n' }, 'hidden')
  check({ kallsyms: zeros }, 'hidden')
  check({ kallsyms: '' }, 'unreadable')
  check({}, 'unreadable')
})

test('symbols of the kernel are not looked for where its frames are not taken', async () => {
  const off = configured({ SVC_AGENT_PROFILING_INCLUDE_KERNEL: 'false' })
  assert.deepEqual(await kernelSymbols.try(off), [])
})

test('the cache of tables: to be made, there, not to be written, and not svc’s alone', async () => {
  const base = mkdtempSync(join(directory, 'state-'))
  const unwind = join(base, 'unwind')
  const check = async (queue: string, want: string) => {
    const found = await tableCache.try(configured({ SVC_PIPELINE_EXPORT_QUEUE_DIRECTORY: queue }))
    assert.deepEqual(found.map(nameOf), [want])
    assert.equal(outcomeOf(tableCache, found[0]!).state, want === 'ok' ? 'ok' : 'note')
  }
  await check(join(base, 'queue'), 'ok')
  assert.equal(existsSync(unwind), false)
  mkdirSync(unwind, { mode: 0o700 })
  await check(join(base, 'queue'), 'ok')
  chmodSync(unwind, 0o777)
  await check(join(base, 'queue'), 'shared')
  rmSync(unwind, { recursive: true })
  symlinkSync(tmpdir(), unwind)
  await check(join(base, 'queue'), 'shared')
  const file = join(base, 'file')
  writeFileSync(file, '')
  await check(join(file, 'queue'), 'unwritable')
})

test('directories with debug information that are there are named; none is a note', async () => {
  const check = async (directories: string, want: string) => {
    const env = { SVC_AGENT_PROFILING_SYMBOLS_DEBUGINFO_DIRS: directories }
    const [found] = await debugFiles.try(configured(env))
    const { state, detail } = outcomeOf(debugFiles, found!)
    assert.equal(`${state} ${detail}`, want)
  }
  await check(`/nonexistent,${directory}`, `ok ${directory}`)
  await check('/nonexistent,/neither', 'note not found: /nonexistent, /neither')
})
