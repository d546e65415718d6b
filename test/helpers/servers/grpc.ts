import {
  type ChannelOptions,
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js'

const bytes = (value: Buffer) => value
const method = (name: string, responseStream: boolean) => ({
  path: `/shop.Items/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
})

/**
 * A gRPC server at 127.0.0.1. Get answers with its request; Fail with the status that the request's first byte says;
 * List with as many messages as its first byte says, of as many KiB as its second; Hang does not answer.
 */
export async function startGrpc(port = 0): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = new Server()
  const get = (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => done(null, call.request)
  const fail = (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) =>
    done({ code: call.request[0] as status, details: 'as asked for' })
  const list = (call: ServerWritableStream<Buffer, Buffer>) => {
    const [count = 0, kib = 0] = call.request
    for (let i = 0; i < count; i++) call.write(Buffer.alloc(kib * 1024, i))
    call.end()
  }
  server.addService(
    {
      Get: method('Get', false),
      Fail: method('Fail', false),
      List: method('List', true),
      Hang: method('Hang', false),
    },
    { Get: get, Fail: fail, List: list, Hang: () => {} },
  )
  const bound = await new Promise<number>((done, failed) =>
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? failed(error) : done(bound),
    ),
  )
  return {
    port: bound,
    close: async () => server.forceShutdown(),
  }
}

/** A client of that server over one connection. */
export class GrpcShopper {
  readonly #client: Client

  constructor(port: number, options: ChannelOptions = {}) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options)
  }

  /** Resolves to the status code. `headers` go along as metadata. */
  call(
    name: string,
    request: Buffer = Buffer.alloc(3),
    headers: Readonly<Record<string, string>> = {},
    timeoutMs = 20_000,
  ): Promise<number> {
    const metadata = new Metadata()
    for (const [key, value] of Object.entries(headers)) metadata.set(key, value)
    return new Promise(done => {
      this.#client.makeUnaryRequest(
        `/shop.Items/${name}`,
        bytes,
        bytes,
        request,
        metadata,
        { deadline: Date.now() + timeoutMs },
        error => done(error?.code ?? status.OK),
      )
    })
  }

  /** Resolves to the number of messages that came. */
  list(count: number, kib: number): Promise<number> {
    const call = this.#client.makeServerStreamRequest(
      '/shop.Items/List',
      bytes,
      bytes,
      Buffer.from([count, kib]),
    )
    return new Promise((done, failed) => {
      let messages = 0
      call.on('data', () => messages++)
      call.on('error', failed)
      call.on('end', () => done(messages))
    })
  }

  /** Calls Hang and takes the call back once the server has it. */
  cancel(): Promise<number> {
    return new Promise(done => {
      const call = this.#client.makeUnaryRequest('/shop.Items/Hang', bytes, bytes, Buffer.alloc(3), error =>
        done(error?.code ?? status.OK),
      )
      setTimeout(() => call.cancel(), 50)
    })
  }

  close(): void {
    this.#client.close()
  }
}
