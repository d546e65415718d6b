import { bss, rodata } from '../../kernel/gen/sock.ts'
import { btf, loadPrograms, socketTracepoints } from '../../kernel/needs.ts'
import type { CaptureBackend } from './capture.ts'
import { SocketCapture } from './socket-capture.ts'
import { namesOf, oneForAll } from './tls/programs.ts'

/** Tracepoints at the end of sock_sendmsg and sock_recvmsg, with access to the socket (kernel 6.3 and later). */
export const sock: CaptureBackend = {
  name: 'sock',
  summary: 'Socket tracepoints: one program run per socket call, none for other files.',
  needs: [loadPrograms, btf, socketTracepoints],
  objects: [
    { file: 'sock.bpf.o', captureBytes: 1024 },
    { file: 'large/sock.bpf.o', captureBytes: 8192 },
  ],
  programs: ['svc_sock_send', 'svc_sock_recv', 'svc_sock_state', 'svc_sock_destroy', 'svc_sock_thread'],
  again: ['svc_sock_again_send', 'svc_sock_again_recv'],
  uprobes: namesOf(oneForAll),
  bootstrap: 'svc_sock_bootstrap',
  layout: { bss, rodata },
  objectFor: bytes => sock.objects.find(({ captureBytes }) => captureBytes >= bytes)?.file,
  open: (native, options, sink) => new SocketCapture(native, sock, options, sink),
}
