import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listening, Program, until } from './program.ts'

/** A server that sells what `load.ts` asks for. */
export interface Shop {
  readonly port: number
  /** Processes that answer. */
  readonly pids: number[]
  /** `service.name` that its spans must have. */
  readonly service: string
  close(): Promise<void>
}

export async function startNodeShop(port: number): Promise<Shop> {
  const program = await Program.start('shop-node.ts', { port })
  return {
    port,
    pids: [program.pid],
    service: 'shop-node',
    close: () => program.close(),
  }
}

export async function startPythonShop(port: number): Promise<Shop> {
  const program = await Program.start('shop-python.py', { port })
  return {
    port,
    pids: [program.pid],
    service: 'shop-python',
    close: () => program.close(),
  }
}

/** nginx with files of its own and its log of requests. */
export interface Nginx extends Shop {
  /** Methods and targets of the requests that it logged. */
  requests(): string[]
}

/** Size of the file /big. */
export const bigBytes = 1 << 20

/** Starts nginx at 127.0.0.1 and ::1. At `tlsPort`, if there is one, it serves the same over TLS. */
export async function startNginx(port: number, tlsPort = 0): Promise<Nginx> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-nginx-'))
  for (const name of ['items', 'files', 'temporary']) mkdirSync(join(directory, name))
  writeFileSync(join(directory, 'files/big'), Buffer.alloc(bigBytes, 'b'))
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  execFileSync(
    'openssl',
    ['req', '-x509', ...key, '-keyout', 'tls.key', '-out', 'tls.pem', '-subj', '/CN=shop'],
    { cwd: directory, stdio: 'pipe' },
  )
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${directory}/temporary/${name};`)
    .join(' ')
  const configuration = join(directory, 'nginx.conf')
  writeFileSync(
    configuration,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log; daemon off;
events { worker_connections 1024; }
http {
  ${temporary}
  log_format line '$request_method $request_uri $status'; access_log ${directory}/access.log line;
  sendfile on; keepalive_requests 1000000000; default_type text/plain; client_max_body_size 16m;
  server {
    listen 127.0.0.1:${port} backlog=512; listen [::1]:${port};
    ${tlsPort === 0 ? '' : `listen 127.0.0.1:${tlsPort} ssl;`}
    ssl_certificate ${directory}/tls.pem; ssl_certificate_key ${directory}/tls.key;
    location / { return 404 "not here\\n"; }
    location = /empty { return 204; }
    location = /load { access_log off; return 204; }
    location = /served { access_log off; stub_status; }
    location /items/ { root ${directory}; dav_methods PUT; error_page 404 = @item; }
    location @item { return 200 "an item of the shop\\n"; }
    location /fail/ { return 500 "failed\\n"; }
    location /files/ { root ${directory}; dav_methods PUT; }
  }
}
`,
  )
  const child = spawn('nginx', ['-p', directory, '-c', configuration], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const close = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await listening(port)
    await until('nginx has a worker', 60_000, () => childrenOf(child).length > 0)
  } catch (error) {
    await close()
    throw error
  }
  return {
    port,
    pids: childrenOf(child),
    service: 'nginx',
    requests: () => readFileSync(join(directory, 'access.log'), 'latin1').split('\n').slice(0, -1),
    close,
  }
}

/** Starts nginx before a server of HTTP at 127.0.0.1, to which it keeps its connections. */
export async function startProxy(
  port: number,
  to: number,
): Promise<{ port: number; close(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-proxy-'))
  mkdirSync(join(directory, 'temporary'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${directory}/temporary/${name};`)
    .join(' ')
  const configuration = join(directory, 'nginx.conf')
  writeFileSync(
    configuration,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1; pid ${directory}/pid; error_log ${directory}/error.log; daemon off;
events { worker_connections 1024; }
http {
  ${temporary}
  access_log off; keepalive_requests 1000000000;
  upstream app { server 127.0.0.1:${to}; keepalive 32; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=512;
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host 127.0.0.1:${to}; }
  }
}
`,
  )
  const child = spawn('nginx', ['-p', directory, '-c', configuration], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  })
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  const close = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    await listening(port)
  } catch (error) {
    await close()
    throw error
  }
  return { port, close }
}

function childrenOf({ pid }: ChildProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number)
}
