// The page itself: files without data, which need no token. The page asks for a token if one is required.

import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { ApiPath } from '../../../config/api-paths.ts'
import { type Answer, answer, failure } from '../answer.ts'
import type { ApiOperation, ApiRequest } from '../operation.ts'
import { pageIds } from './pages.ts'

/** By file extension. */
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}

/** Same origin only, nothing inline, no framing. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const pageHeaders = {
  'Content-Security-Policy': policy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
}

/** Names of assets are hashes of their content. */
const assetHeaders = { 'Cache-Control': 'public, max-age=31536000, immutable' }

/** Stored forms of a file, smallest first. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

const index = 'index.html'

const pagePaths: readonly ApiPath[] = ['/ui', '/ui/', ...pageIds.map(id => `/ui/${id}` as const)]

/** Serves the files of `directory` (written by `tools/bundle-ui.ts`). If they are missing, the page says so. */
export function pageFiles(directory: string): ApiOperation[] {
  const names = namesIn(directory)
  const page = (request: ApiRequest) =>
    names.includes(index) ? file(directory, index, pageHeaders, request) : notBuilt
  return [
    ...pagePaths.map(path => operation(path, page)),
    ...names
      .filter(name => name !== index)
      .map(name => operation(`/ui/assets/${name}`, request => file(directory, name, assetHeaders, request))),
  ]
}

/** The answer while the page is off. */
export function noPage(): ApiOperation[] {
  const off = failure(404, 'the live page is off; set self_telemetry.ui.enabled: true, and restart svc')
  return pagePaths.map(path => operation(path, () => off))
}

const notBuilt = failure(
  503,
  'cannot show the page: its files are missing; build them with "bash tools/setup", or reinstall svc',
  {},
  { 'Retry-After': '60' },
)

function operation(path: ApiPath, handle: ApiOperation['handle']): ApiOperation {
  const summary = 'A file of the live page.'
  return {
    method: 'GET',
    path,
    id: path,
    tag: 'ui',
    summary,
    access: 'open',
    isFile: true,
    outcomes: {},
    handle,
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).flatMap(name =>
      name.endsWith('.gz') ? [name.slice(0, -'.gz'.length)] : [],
    )
  } catch {
    return [] // the bundle runs without them
  }
}

async function file(
  directory: string,
  name: string,
  more: Readonly<Record<string, string>>,
  { headers }: ApiRequest,
): Promise<Answer> {
  const accepted = String(headers['accept-encoding'] ?? '')
  const found = encodings.find(([encoding]) => accepts(accepted, encoding))
  const type = types[extname(name)] ?? 'application/octet-stream'
  if (found === undefined)
    return answer(200, type, gunzipSync(await readFile(join(directory, `${name}.gz`))), {
      Vary: 'Accept-Encoding',
      ...more,
    })
  const [encoding, suffix] = found
  const body = await readFile(join(directory, name + suffix))
  return answer(200, type, body, { 'Content-Encoding': encoding, Vary: 'Accept-Encoding', ...more })
}

/** Whether a list of codings (RFC 9110 §12.5.3) accepts one; a weight of 0 excludes it. */
function accepts(list: string, encoding: string): boolean {
  return list.split(',').some(each => {
    const [name = '', ...parameters] = each.split(';').map(part => part.trim().toLowerCase())
    return name === encoding && !parameters.some(parameter => /^q=0(\.0*)?$/.test(parameter))
  })
}
