import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { settings } from '../../../test/helpers/api-server.ts'
import { frame, groupOf, sampleOf, shopAndWorker, taken } from '../../../test/helpers/host-profile.ts'
import { cleanEnvironment, svcProgram } from '../../../test/helpers/program-under-test.ts'
import { createLogger } from '../../foundation/lib/logger.ts'
import type { ProfileRefusal, ProfileRequest, TakenProfile } from '../../foundation/model/taken-profile.ts'
import { peerUser } from '../../kernel/peer-user.ts'
import { profileFile } from '../../signals/profiles/profile-file.ts'
import { operations } from '../../view/api/routes.ts'
import { type Api, startApi } from '../../view/api/server.ts'
import type { AgentView } from '../../view/api/types.ts'
import { writeOutput } from './profile/output-file.ts'

const directory = mkdtempSync(join(tmpdir(), 'svc-profile-'))
const socket = join(directory, 'svc.sock')
const asked: ProfileRequest[] = []
let answer: TakenProfile | ProfileRefusal = shopAndWorker()
let api: Api

before(async () => {
  const view = {
    profiles: [],
    pages: [],
    health: () => ({ healthy: true }),
    config: () => ({ agent: { profiling: { memory: false, off_cpu: true } } }),
    takeProfile: async (request: ProfileRequest) => {
      asked.push(request)
      return answer
    },
    profileFile,
  } as unknown as AgentView
  api = await startApi({
    settings: { ...settings, admin_socket: socket },
    operations: operations(view, '/metrics'),
    log: createLogger({ level: 'error', format: 'json', write: () => undefined }),
    peerUser,
  })
  writeFileSync(
    join(directory, 'config.yaml'),
    JSON.stringify({ self_telemetry: { listen: '127.0.0.1:1', admin_socket: socket } }),
  )
})
after(async () => {
  await api?.close()
  rmSync(directory, { recursive: true })
})

interface Result {
  readonly code: number | null
  readonly out: Buffer
  readonly talk: string
}

function svcProfile(...args: string[]): Promise<Result> {
  const child = spawn(process.execPath, [svcProgram, 'profile', ...args], {
    cwd: directory,
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const out: Buffer[] = []
  let talk = ''
  child.stdout.on('data', chunk => out.push(chunk))
  child.stderr.on('data', chunk => {
    talk += chunk
  })
  return new Promise(resolve => child.on('close', code => resolve({ code, out: Buffer.concat(out), talk })))
}

test('without a file the functions are a table, and the host is told of', async () => {
  answer = shopAndWorker()
  const { code, out, talk } = await svcProfile()
  assert.deepEqual([code, talk], [0, ''])
  const text = out.toString()
  assert.match(
    text,
    /^all processes: CPU time\n1\.00 s in 2 s, 100 samples at 100 Hz, 5\.0% without a name\n/,
  )
  assert.match(text, /^host: 25\.0% busy, 75\.0% idle$/m)
  assert.match(text, /^90\.0% +shop +12 +\/usr\/bin\/shop$/m)
  assert.match(text, /^10\.0% +worker +31,32,33,… +\/usr\/bin\/worker$/m)
  assert.match(text, /^ *SELF +TOTAL +FUNCTION +FILE$/m)
  assert.match(text, /^60\.0% +60\.0% +parse\(char const\*\) +\/usr\/lib\/libparse\.so$/m)
  assert.match(text, /^20\.0% +90\.0% +serve +\/usr\/bin\/program$/m)
  assert.match(text, /^ 0\.0% +100\.0% +main +\/usr\/bin\/program$/m)
  // Names are foreign: none of them moves a cursor or sets a title.
  assert.doesNotMatch(text, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]/)
  for (const line of text.split('\n')) assert.ok(line.length <= 100, line)
})

test('a function that calls itself counts once in its total', async () => {
  const [main, walk, leaf] = [frame('main'), frame('walk'), frame('leaf')]
  answer = taken([
    groupOf('tree', [7], [sampleOf(3, [main, walk, walk, leaf, walk]), sampleOf(1, [main, walk, walk])]),
  ])
  const { out } = await svcProfile('tree')
  assert.match(out.toString(), /^100\.0% +100\.0% +walk /m)
  assert.match(out.toString(), /^ *0\.0% +75\.0% +leaf /m)
  assert.doesNotMatch(out.toString(), /SERVICE/)
})

test('what was merged of very many groups is in the table, too, so that it adds up', async () => {
  const groups = Array.from({ length: 10_500 }, (_, i) =>
    groupOf(`s${i}`, [i], [sampleOf(1, [frame('run')])]),
  )
  answer = taken([groupOf('shop', [1], [sampleOf(10_500, [frame('main')])]), ...groups])
  const { out } = await svcProfile()
  const shares = [...out.toString().matchAll(/^ *([\d.]+)% +[\d.]+% +(main|run|\[other\])/gm)]
  assert.equal(shares.length, 3, out.toString())
  const sum = shares.reduce((all, [, share]) => all + Number(share), 0)
  assert.ok(Math.abs(sum - 100) < 0.2, String(sum))
})

test('the words of the command are what the agent is asked', async () => {
  answer = shopAndWorker()
  const check = async (args: string[], want: Partial<ProfileRequest>) => {
    const { code, talk } = await svcProfile(...args)
    assert.equal(code, 0, talk)
    const { signal: _, ...rest } = asked.at(-1)!
    assert.deepEqual(rest, want)
    return talk
  }
  await check([], { kind: 'cpu', seconds: 10 })
  await check(['12', '-d', '1s', '-r', '997'], { kind: 'cpu', seconds: 1, pid: 12, rate: 997 })
  await check(['a b&c', '--duration=2'], { kind: 'cpu', seconds: 2, service: 'a b&c' })
  // The configuration has off-CPU on already.
  assert.equal(await check(['-k', 'off-cpu', '-d', '1m'], { kind: 'off_cpu', seconds: 60 }), '')
  assert.match(
    await check(['--kind', 'memory'], { kind: 'memory', seconds: 10 }),
    /^agent\.profiling\.memory is off: profiling runs only for the duration of the recording$/m,
  )
})

test('the end of a file’s name is its format; a file that is there is replaced', async () => {
  answer = shopAndWorker()
  const path = (name: string) => join(directory, name)
  const pprof = await svcProfile('-o', path('a.pb.gz'))
  assert.match(pprof.talk, /^wrote .*a\.pb\.gz \(\d+ bytes\): go tool pprof .*a\.pb\.gz$/m)
  assert.ok(gunzipSync(readFileSync(path('a.pb.gz'))).includes('parse(char const*)'))
  assert.equal(statSync(path('a.pb.gz')).mode & 0o777, 0o600)
  await svcProfile('-o', path('a.svg'))
  assert.match(readFileSync(path('a.svg'), 'utf8'), /^<svg /)
  writeFileSync(path('a.folded'), 'old')
  const { code, out } = await svcProfile('-o', path('a.folded'))
  assert.deepEqual([code, out.length], [0, 0])
  const folded = readFileSync(path('a.folded'), 'utf8')
  assert.match(folded, /^shop;main;serve;parse\(char const\*\) 600000000$/m)
  await svcProfile('-o', path('a.json'))
  assert.equal(JSON.parse(readFileSync(path('a.json'), 'utf8')).title, 'all processes')
  const piped = await svcProfile('-o', '-')
  assert.deepEqual([piped.out.toString(), piped.talk], [folded, ''])
  assert.equal(JSON.parse((await svcProfile('--json')).out.toString()).kind, 'cpu')
})

test('what cannot be written is refused before anything is recorded', async () => {
  mkdirSync(join(directory, 'd.svg'))
  symlinkSync('/dev/null', join(directory, 'null.svg'))
  const before = asked.length
  const check = async (args: string[], code: number, talk: RegExp) => {
    const result = await svcProfile(...args)
    assert.deepEqual([result.code, result.out.length], [code, 0])
    assert.match(result.talk, talk)
  }
  await Promise.all([
    check(['-o', 'd.svg'], 2, /cannot write d\.svg: not a regular file/),
    check(['-o', 'null.svg'], 2, /not a regular file/),
    check(['-o', 'none/a.svg'], 1, /cannot write none\/a\.svg: .*no such file/i),
    check(['-o', 'a.html'], 2, /cannot determine the format of a\.html; use a name that ends in \.pb\.gz/),
    check(['-o', 'a.json', '--json'], 2, /exclude each other/),
    check(['-d', '61s'], 2, /--duration must be whole seconds from 1s to 60s/),
    check(['-d', '500ms'], 2, /--duration must be whole seconds/),
    check(['-k', 'offcpu'], 2, /unknown kind "offcpu"; did you mean off-cpu\?/),
    check(['-k', 'memory', '-r', '9'], 2, /--rate is for the kind cpu/),
    check(['0'], 2, /there is no process 0/),
    check(['-r', '0'], 2, /--rate must be a whole number from 1 to 999/),
  ])
  assert.equal(asked.length, before)
  assert.ok(!existsSync(join(directory, 'a.html')))
})

test('why there is no profile is told to a person, with what was probably meant', async () => {
  const check = async (refusal: ProfileRefusal, target: string, want: string) => {
    answer = refusal
    const { code, out, talk } = await svcProfile(target)
    assert.deepEqual([code, out.length, talk], [1, 0, `svc: ${want}\n`])
  }
  const none = { refused: 'no process has this service name', hint: '', cause: 'no_target' } as const
  const services = ['shop', 'shop-worker', 'mail', 'a', 'b', 'c', 'd']
  await check({ ...none, services }, 'shp', 'no process has this service name; did you mean shop?')
  await check({ ...none, services }, 'work', 'no process has this service name; did you mean shop-worker?')
  await check(
    { ...none, services },
    'zzzzzzzz',
    'no process has this service name; there are shop, shop-worker, mail, a, b and others',
  )
  await check(
    { refused: 'another recording is under way', hint: 'try again in 5 s', cause: 'busy' },
    'shop',
    'another recording is under way; try again in 5 s',
  )
  await check(
    { refused: 'profiles are off', hint: 'set agent.profiling.enabled: true', cause: 'off' },
    'shop',
    'profiles are off; set agent.profiling.enabled: true',
  )
})

test('an answer that is no profile is refused in words', async () => {
  const server = createServer((_, response) => response.end('{"nodes":{"parent":[0,0]}}'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { code, talk } = await svcProfile('--url', `http://127.0.0.1:${port}`)
  server.close()
  assert.deepEqual([code, talk], [1, 'svc: cannot read the profile: invalid answer\n'])
})

test('a file beside the one that is written is somebody else’s, and stays', () => {
  const path = join(directory, 'kept.svg')
  const beside = `${path}.${process.pid}.partial`
  writeFileSync(beside, 'kept')
  assert.throws(() => writeOutput(path, Buffer.from('new')), /cannot write .*kept\.svg: .*exist/)
  assert.deepEqual([readFileSync(beside, 'utf8'), existsSync(path)], ['kept', false])
})

test('where no agent runs, the ways that were tried are told', async () => {
  const config = join(directory, 'other.yaml')
  writeFileSync(
    config,
    JSON.stringify({ self_telemetry: { listen: '127.0.0.1:1', admin_socket: '/none/svc.sock' } }),
  )
  const { code, talk } = await svcProfile('--config', config)
  assert.equal(code, 1)
  assert.match(
    talk,
    /^svc: cannot take a profile: no agent answers \(unix:\/none\/svc\.sock: .*start it with "svc run"/,
  )
})
