import { type Agent, type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { rawAnswers } from '../../tools/testing/reached.ts'

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Whose connections to use; left out: one of its own. */
  readonly agent?: Agent
}

/** One request on a connection of its own. */
export function call(
  port: number,
  path: string,
  { method = 'GET', headers = {}, body, agent }: Call = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, headers, agent: agent ?? false }
    const sent = request(options, reply => {
      const chunks: Buffer[] = []
      reply.on('data', (chunk: Buffer) => chunks.push(chunk))
      reply.on('error', reject)
      reply.on('end', () =>
        resolve({ status: reply.statusCode!, headers: reply.headers, body: Buffer.concat(chunks) }),
      )
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Sends bytes as they are, and reads the one answer that comes before the server ends the connection. */
export function callRaw(port: number, bytes: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', chunk => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('end', () => {
      socket.end()
      try {
        const reply = parseReply(Buffer.concat(chunks))
        const [method, path = ''] = bytes.split(/[ \r\n]/, 2)
        rawAnswers.publish({
          request: { method, path },
          response: { statusCode: reply.status, headers: reply.headers },
        })
        resolve(reply)
      } catch (error) {
        reject(error as Error)
      }
    })
  })
}

function parseReply(bytes: Buffer): Reply {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) throw new Error(`no answer: ${JSON.stringify(bytes.toString('latin1'))}`)
  const [first, ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  return { status: Number(first!.split(' ')[1]), headers, body: bytes.subarray(end + 4) }
}
