import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { withoutBpf } from '../../test/helpers/compile-bpf.ts'
import { withoutCall } from '../../test/helpers/seccomp.ts'
import { hasTracefs, withTracefs } from '../../test/helpers/tracefs.ts'
import { refusalOf } from './bpf-refusal.ts'
import { capabilitiesOf } from './capabilities.ts'
import { hintText, type Need, need, type Outcome, outcomeOf, type State } from './need.ts'
import { firstMissing, needs, tryLockedMemory } from './needs.ts'

const skip = withoutBpf

type Tried = Outcome & { readonly name: string }

/** All needs, tried by a process of its own that `wrapper` starts. */
function tryInside(wrapper: readonly string[]): Tried[] {
  const script = `
    import { needs } from ${JSON.stringify(import.meta.resolve('./needs.ts'))}
    import { outcomeOf } from ${JSON.stringify(import.meta.resolve('./need.ts'))}
    console.log(JSON.stringify(needs.map(need => ({ name: need.name, ...outcomeOf(need, need.try()) }))))`
  const [program, ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', script]
  return JSON.parse(execFileSync(program!, args, { stdio: ['ignore', 'pipe', 'pipe'] }).toString())
}

/** What is not as it should be: name, state, fault. */
function troubles(tried: readonly Tried[]): (string | undefined)[][] {
  return tried
    .filter(({ state }) => state !== 'ok' && state !== 'note')
    .map(({ name, state, fault }) => [name, state, fault])
}

test('every need answers with what it found, and again the same', { skip }, () => {
  const tried = needs.map(each => outcomeOf(each, each.try()))
  for (const { detail } of tried) assert.doesNotMatch(detail, /^$|\n|undefined|\.$/)
  assert.deepEqual(
    tried.slice(0, -1),
    needs.slice(0, -1).map(each => outcomeOf(each, each.try())),
  )
})

test('this machine, on which the tests of the capture run, has all of them', { skip }, () => {
  assert.deepEqual(troubles(tryInside(['env'])), [])
  assert.equal(firstMissing(needs), undefined)
})

const untried = [
  ['kernel memory', 'unknown', 'untried'],
  ['ring buffer', 'unknown', 'untried'],
]

test('without privilege the capabilities are named, and nothing else is blamed', { skip }, () => {
  // Still root, who may read the files of this tree wherever it stands.
  const without = (...names: string[]) => [
    'setpriv',
    '--inh-caps=-all',
    `--bounding-set=${names.map(name => `-${name}`).join(',')}`,
  ]
  const check = (wrapper: string[], detail: string, ...more: string[][]) => {
    const tried = tryInside(wrapper)
    const programs = tried.find(({ name }) => name === 'eBPF programs')!
    assert.equal(programs.detail, detail)
    assert.deepEqual(troubles(tried), [['eBPF programs', 'missing', 'capabilities'], ...untried, ...more])
  }
  const denied = ['processes of others', 'limited', 'denied']
  check(without('all'), 'not permitted: CAP_BPF and CAP_PERFMON missing', denied)
  check(without('sys_admin', 'perfmon'), 'not permitted: CAP_PERFMON missing')
  check(without('sys_admin', 'bpf'), 'not permitted: CAP_BPF missing')
})

test('with the capabilities that the table asks for, a user without any other right has all', {
  skip,
}, () => {
  const names = [...new Set(needs.flatMap(each => each.capabilities ?? []))]
  const list = names.map(name => `+${name.toLowerCase()}`).join(',')
  const granted = [
    ...['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'],
    ...[`--inh-caps=${list}`, `--ambient-caps=${list}`],
  ]
  assert.deepEqual(troubles(tryInside(granted)), [])
})

test('a user namespace, a seccomp filter and hidden types are told apart', { skip }, () => {
  const programs = (wrapper: readonly string[]) =>
    troubles(tryInside(wrapper)).filter(([name]) => name !== 'processes of others')
  assert.deepEqual(programs(['unshare', '--user', '--map-root-user']), [
    ['eBPF programs', 'missing', 'user_namespace'],
    ...untried,
  ])
  assert.deepEqual(programs(withoutCall('bpf')), [['eBPF programs', 'missing', 'seccomp'], ...untried])
  const hidden = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', 'sh']
  assert.deepEqual(programs(hidden), [
    ['BTF', 'missing', 'absent'],
    ['socket tracepoints', 'unknown', 'untried'],
    ...(hasTracefs ? [] : [['system call tracepoints', 'missing', 'absent']]),
  ])
})

test('in a pid namespace of its own the agent loses the names of processes', { skip }, () => {
  const tried = tryInside(['unshare', '--pid', '--fork', '--mount-proc'])
  assert.deepEqual(troubles(tried), [
    ['host pid namespace', 'limited', 'own'],
    ['processes of others', 'unknown', 'none'],
  ])
  const { hints } = tried.find(({ name }) => name === 'host pid namespace')!
  assert.equal(hints?.kubernetes, 'hostPID: true')
})

test('without tracefs the tracepoints of system calls are missing for whoever insists on them', {
  skip,
}, () => {
  const script = `
    import { firstMissing, syscallTracepoints, syscallTracepointsAnyway } from ${JSON.stringify(import.meta.resolve('./needs.ts'))}
    console.log(JSON.stringify([syscallTracepoints, syscallTracepointsAnyway].map(need => firstMissing([need])?.detail ?? '')))`
  const tried = (wrapper: readonly string[]): string[] => {
    const [program, ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', script]
    return JSON.parse(execFileSync(program!, args).toString())
  }
  const hide = 'mount -t tmpfs none /sys/kernel/tracing && mount -t tmpfs none /sys/kernel/debug && exec "$@"'
  const [byDefault, insisted] = tried(['unshare', '-m', 'sh', '-c', hide, 'sh'])
  assert.equal(byDefault, '') // the socket tracepoints of this kernel do without
  assert.match(insisted!, /^there is no tracepoint syscalls\/sys_enter_\w+ in \/sys\/kernel\/tracing$/)
  assert.deepEqual(tried(withTracefs), ['', ''])
})

test('/proc that hides processes is told, in both its forms', { skip }, () => {
  const asUser = 'exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"'
  for (const option of ['hidepid=1', 'hidepid=2']) {
    const script = `mount -t proc -o ${option} proc /proc && ${asUser}`
    const tried = tryInside(['unshare', '-m', 'sh', '-c', script, 'sh'])
    assert.deepEqual(troubles(tried).at(-1), ['processes of others', 'limited', 'hidden'], option)
    assert.match(tried.at(-1)!.detail, /^\/proc is mounted with hidepid=/)
  }
})

test('a kernel before 5.11 counts locked memory, which not everybody may lift', { skip }, () => {
  assert.deepEqual(tryLockedMemory('5.11.0-rc1'), { ok: 'no limit since Linux 5.11' })
  const script = `import { tryLockedMemory } from ${JSON.stringify(import.meta.resolve('./needs.ts'))}
    console.log(JSON.stringify(tryLockedMemory('5.10.0-32-amd64')))`
  const limited = 'ulimit -l 64 && exec setpriv --inh-caps=-all --bounding-set=-all "$@"'
  const node = [process.execPath, '--input-type=module', '-e', script]
  const found = JSON.parse(execFileSync('sh', ['-c', limited, 'sh', ...node]).toString())
  assert.equal(found.fault, 'limit')
})

test('why bpf(2) was refused is read off the process', () => {
  const proc = mkdtempSync(join(tmpdir(), 'svc-proc-'))
  const check = (
    code: string,
    facts: { caps?: string; seccomp?: number; map?: string; last?: number },
    want: string,
    detail: RegExp,
  ) => {
    const { caps = '000001ffffffffff', seccomp = 0, map = '0 0 4294967295', last = 40 } = facts
    mkdirSync(join(proc, 'self'), { recursive: true })
    mkdirSync(join(proc, 'sys/kernel'), { recursive: true })
    writeFileSync(join(proc, 'self/status'), `Name:\tsvc\nCapEff:\t${caps}\nSeccomp:\t${seccomp}\n`)
    writeFileSync(join(proc, 'self/uid_map'), `         ${map}\n`)
    writeFileSync(join(proc, 'sys/kernel/cap_last_cap'), `${last}\n`)
    const found = refusalOf(code, proc)
    assert.equal(found.fault, want)
    assert.match(found.detail, detail)
  }
  check('EPERM', { caps: '0000000000000000', seccomp: 2 }, 'capabilities', /CAP_BPF and CAP_PERFMON missing$/)
  check('EPERM', { caps: '0000008000000000' }, 'capabilities', /: CAP_PERFMON missing$/)
  check('EPERM', { caps: '0000000000000000', last: 37 }, 'old_capabilities', /: CAP_SYS_ADMIN missing$/)
  check('EPERM', { caps: '0000000000200000', last: 37 }, 'security_module', /by a security module/)
  check('EPERM', { map: '0 1000 1' }, 'user_namespace', /user namespace/)
  check('EPERM', { seccomp: 2 }, 'seccomp', /seccomp$/)
  check('EACCES', { seccomp: 2 }, 'security_module', /security module/)
  check('ENOSYS', { seccomp: 2 }, 'no_system_call', /seccomp filter is on$/)
  check('ENOMEM', {}, 'refused', /: ENOMEM$/)
  rmSync(proc, { recursive: true })
  // Without /proc nothing is known of this process, and nothing is made up.
  assert.equal(refusalOf('EPERM', proc).fault, 'security_module')
})

test('capabilities are read off their mask', () => {
  assert.deepEqual(
    [...capabilitiesOf('000000c000280004')],
    ['DAC_READ_SEARCH', 'SYS_PTRACE', 'SYS_ADMIN', 'PERFMON', 'BPF'],
  )
  assert.equal(capabilitiesOf('0000000000000000').size, 0)
})

test('the first that is missing is told; what is unknown, limited or a note is not missing', () => {
  const tried: string[] = []
  const hints = { any: 'do this' }
  const one = (name: string, state: State): Need =>
    need({
      name,
      group: 'traces',
      summary: name,
      impact: name,
      faults: { bad: { state: state === 'ok' ? 'missing' : state, what: name, hints } },
      try: () => {
        tried.push(name)
        return state === 'ok' ? { ok: name } : { fault: 'bad', detail: name }
      },
    })
  const check = (wanted: Need[], want: string | undefined) => assert.equal(firstMissing(wanted)?.detail, want)
  check([], undefined)
  check([one('a', 'ok'), one('b', 'unknown'), one('c', 'limited'), one('d', 'note')], undefined)
  tried.length = 0
  check([one('a', 'ok'), one('b', 'missing'), one('c', 'missing')], 'b')
  assert.deepEqual(tried, ['a', 'b'])
  assert.equal(firstMissing([one('a', 'missing')])!.hint, 'do this')
})

test('one sentence of hints has what helps anywhere and what fits the installation', () => {
  const hints = { any: 'run as root', systemd: 'A=b', kubernetes: 'a: b' }
  assert.equal(hintText(hints, 'host'), 'run as root')
  assert.equal(hintText(hints, 'container'), 'run as root')
  assert.equal(hintText(hints, 'systemd'), 'run as root; systemd: A=b')
  assert.equal(hintText({ kubernetes: 'a: b' }, 'kubernetes'), 'kubernetes: a: b')
  assert.equal(hintText({ kernel: 'run Linux 6.3' }, 'systemd'), 'run Linux 6.3')
})
