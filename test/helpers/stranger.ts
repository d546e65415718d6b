// Somebody who may not: asks the management API for everything, in every way, and says what came back.

import { execFileSync } from 'node:child_process'

/** What is asked, and how an answer is told that it should not hold. */
export interface Walk {
  readonly host: string
  readonly port: number
  readonly paths: readonly string[]
  /** Texts that no answer may hold. */
  readonly secrets: readonly string[]
  /** Every method in every way, and not only in the plain ones. */
  readonly isWhole: boolean
}

export interface Step {
  readonly way: string
  readonly method: string
  readonly path: string
  readonly status: number
  /** The first secret that the answer holds; '' for none. */
  readonly secret: string
  /** Bytes behind the headers. */
  readonly size: number
}

/** Sent one after the other on a connection of its own, for `walkScript`. */
export const ways = [
  'plain',
  'foreign host',
  'rebound name',
  'forwarded',
  'local origin',
  'foreign origin',
  'cookie',
  'bearer',
  'absolute',
  'absolute local',
  'two slashes',
  'dots',
  'encoded',
  'HTTP/1.0',
  'upgrade',
  'kept',
] as const

/** A module that walks, and prints the steps as JSON. */
export function walkScript(walk: Walk): string {
  return `
    import { connect } from 'node:net'
    const { host, port, paths, secrets, isWhole } = ${JSON.stringify(walk)}
    const authority = host.includes(':') ? '[' + host + ']:' + port : host + ':' + port
    const line = (method, target, headers = {}, version = '1.1') => {
      const body = method === 'POST' ? '{"key":"x"}' : ''
      const all = { ...(version === '1.1' && { Host: authority, Connection: 'close' }), ...(body && { 'Content-Type': 'application/json', 'Content-Length': body.length }), ...headers }
      return method + ' ' + target + ' HTTP/' + version + '\\r\\n' + Object.entries(all).map(([k, v]) => k + ': ' + v + '\\r\\n').join('') + '\\r\\n' + body
    }
    const ways = {
      'plain': (m, p) => line(m, p),
      'foreign host': (m, p) => line(m, p, { Host: 'evil.example:' + port }),
      'rebound name': (m, p) => line(m, p, { Host: 'localhost.evil.example:' + port, Origin: 'http://localhost.evil.example:' + port }),
      'forwarded': (m, p) => line(m, p, { 'X-Forwarded-For': '127.0.0.1', Forwarded: 'for=127.0.0.1', 'X-Real-IP': '::1', Via: '1.1 localhost' }),
      'local origin': (m, p) => line(m, p, { Host: 'localhost:' + port, Origin: 'http://localhost:' + port, 'Sec-Fetch-Site': 'same-origin' }),
      'foreign origin': (m, p) => line(m, p, { Origin: 'http://evil.example' }),
      'cookie': (m, p) => line(m, p, { Cookie: ['', 'x', 'undefined', 'null'].map(v => 'svc-session-' + port + '=' + v).join('; ') }),
      'bearer': (m, p) => line(m, p, { Authorization: 'Bearer undefined' }),
      'absolute': (m, p) => line(m, 'http://evil.example' + p),
      'absolute local': (m, p) => line(m, 'http://127.0.0.1:' + port + p, { Host: 'evil.example' }),
      'two slashes': (m, p) => line(m, '/' + p),
      'dots': (m, p) => line(m, '/healthz/..' + p),
      'encoded': (m, p) => line(m, '/%' + p.charCodeAt(1).toString(16) + p.slice(2)),
      'HTTP/1.0': (m, p) => line(m, p, {}, '1.0'),
      'upgrade': (m, p) => line(m, p, { Connection: 'Upgrade, close', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }),
      'kept': (m, p) => line('GET', '/healthz', { Connection: 'keep-alive' }) + line(m, p),
    }
    const ask = text => new Promise(resolve => {
      let got = ''
      const socket = connect(port, host, () => socket.write(text))
      socket.setTimeout(5000, () => socket.destroy())
      socket.setEncoding('utf8').on('data', chunk => { got += chunk })
      socket.on('error', () => {}).on('close', () => resolve(got))
    })
    const steps = []
    const todo = []
    for (const way of Object.keys(ways)) for (const path of paths) for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'])
      if (isWhole || method === 'GET' || way === 'plain') todo.push({ way, method, path })
    const work = async () => {
      for (let next = todo.pop(); next; next = todo.pop()) {
        const { way, method, path } = next
        let got = await ask(ways[way](method, path))
        if (way === 'kept') got = got.slice(got.indexOf('HTTP/1.1', 8))
        const status = Number(/^HTTP\\/1\\.1 (\\d{3})/.exec(got)?.[1] ?? 0)
        const size = got.length - got.indexOf('\\r\\n\\r\\n') - 4
        steps.push({ way, method, path, status, size, secret: secrets.find(secret => got.includes(secret)) ?? '' })
      }
    }
    await Promise.all(Array.from({ length: 4 }, work))
    process.stdout.write(JSON.stringify(steps))`
}

/** Walks as a user of this host. */
export function walkAs(uid: number, walk: Walk): readonly Step[] {
  return runAs(uid, walkScript(walk)) as readonly Step[]
}

/** What a module prints as JSON that runs as a user of this host. */
export function runAs(uid: number, script: string): unknown {
  const printed = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], {
    uid,
    gid: uid,
    cwd: '/',
    env: {},
    encoding: 'utf8',
    maxBuffer: 64 << 20,
  })
  return JSON.parse(printed)
}
