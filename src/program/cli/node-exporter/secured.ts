// Loaded only for servers with a web configuration: TLS and cryptography take 4 MB of memory.

export { admission } from './admission.ts'
export { WebConfig } from './web-config.ts'
