import { execFile, spawnSync } from 'node:child_process'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'

const lacks = (program: string) => spawnSync(program, ['--version']).status !== 0

/** The load generator of nghttp2. */
export const withoutH2load: string | false = lacks('h2load') ? 'h2load is not there (nghttp2-client)' : false
/** A curl that speaks HTTP/2. */
export const withoutCurlHttp2: string | false = String(spawnSync('curl', ['--version']).stdout).includes(
  'nghttp2',
)
  ? false
  : 'a curl with nghttp2 is needed'

/** An HTTP/2 server without TLS at 127.0.0.1, whose library is nghttp2. */
export interface WebServer {
  readonly port: number
  close(): Promise<void>
}

/** Answers with as many bytes as the path's last number says; /missing with 404, /failed with 503, /never not at all. */
export async function startHttp2(port = 0): Promise<WebServer> {
  const server = createServer((request, response) => {
    request.resume()
    if (request.url === '/never') return
    request.on('end', () => {
      response.statusCode = request.url === '/missing' ? 404 : request.url === '/failed' ? 503 : 200
      response.end('x'.repeat(Number(/\d+$/.exec(request.url)?.[0] ?? 0)))
    })
  })
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', session => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  await new Promise<void>(done => server.listen(port, '127.0.0.1', done))
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const session of sessions) session.destroy()
      return new Promise(done => server.close(() => done()))
    },
  }
}

/** Resolves to how many of its requests h2load saw answered with 2xx. */
export async function h2load(
  port: number,
  path: string,
  { requests, connections = 1, streams = 1 }: { requests: number; connections?: number; streams?: number },
): Promise<number> {
  const said = await run(
    'h2load',
    `-n${requests}`,
    `-c${connections}`,
    `-m${streams}`,
    `http://127.0.0.1:${port}${path}`,
  )
  return Number(/status codes: (\d+) 2xx/.exec(said)?.[1])
}

/** One request of curl; its status. */
export async function curlHttp2(url: string, ...more: string[]): Promise<number> {
  return Number(
    await run('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', '--http2-prior-knowledge', ...more, url),
  )
}

function run(program: string, ...words: string[]): Promise<string> {
  return new Promise(done => execFile(program, words, (_error, stdout) => done(stdout)))
}
