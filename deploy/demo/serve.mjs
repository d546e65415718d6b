// Shared code of the demo services: a server that logs as JSON, and requests that propagate the trace.
import { randomBytes } from 'node:crypto'
import { Agent, createServer, request } from 'node:http'

const agent = new Agent({ keepAlive: true })

/** Listen ports: SHOP_PORT, ORDERS_PORT and STOCK_PORT, else these. */
export const ports = {
  shop: Number(process.env.SHOP_PORT ?? 8081),
  orders: Number(process.env.ORDERS_PORT ?? 8082),
  stock: Number(process.env.STOCK_PORT ?? 8083),
}

export const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

/** Sends a request to a service. `trace` is the id of its trace. */
export function ask(service, method, path, trace) {
  const headers = { traceparent: `00-${trace}-${randomBytes(8).toString('hex')}-01` }
  return new Promise((resolve, reject) => {
    const call = request({ agent, port: ports[service], method, path, headers }, answer => {
      let body = ''
      answer.setEncoding('utf8').on('data', part => {
        body += part
      })
      answer.on('end', () => resolve({ status: answer.statusCode, body }))
    })
    call.on('error', reject).end()
  })
}

/** Serves `routes`: rows of a method, a path pattern and a handler that returns a status and a document. */
export function serve(service, routes) {
  const server = createServer(async (question, response) => {
    const { method, url, headers } = question
    const trace = headers.traceparent?.split('-')[1] ?? randomBytes(16).toString('hex')
    const log = (level, message, more) =>
      console.log(
        JSON.stringify({ time: new Date().toISOString(), level, message, trace_id: trace, ...more }),
      )
    const found = routes.find(([its, pattern]) => its === method && pattern.test(url))
    let status = 404
    let document = { error: `no ${method} ${url}` }
    try {
      if (found) [status, document] = await found[2]({ log, trace, id: Number(found[1].exec(url)[1]) })
    } catch (error) {
      status = 500
      document = { error: error.message }
      log('error', `${method} ${url} failed: ${error.message}`, { stack: error.stack })
    }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  server.on('error', error => {
    console.error(`${service} cannot listen: ${error.message}`)
    process.exit(1)
  })
  server.listen(ports[service], '127.0.0.1')
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0))
}
