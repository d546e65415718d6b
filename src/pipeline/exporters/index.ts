// The units of this area: each brings batches to a destination in its own form.
export { type OtlpGrpcOptions, otlpGrpc } from './otlp-grpc.ts'
export { type OtlpHttpOptions, otlpHttp } from './otlp-http.ts'
