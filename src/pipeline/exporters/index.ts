// Units of this area: each sends batches to one kind of destination.
export { type ExporterOptions, otlpGrpc } from './otlp-grpc.ts'
export { type OtlpHttpOptions, otlpHttp } from './otlp-http.ts'
