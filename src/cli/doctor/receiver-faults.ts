import type { Fault } from '../../kernel/need.ts'

/** What can be wrong between here and a receiver, from the name to the answer. */
export const receiverFaults = {
  none: {
    state: 'note',
    what: 'no endpoint is configured, so that nothing leaves this host',
    hints: { config: 'otlp.endpoint: HOST:4317' },
  },
  settings: {
    state: 'missing',
    what: 'the endpoint or a header can never work',
    hints: {
      any: 'correct what it names, in the configuration or in the environment of svc (HTTPS_PROXY)',
      config: 'otlp.endpoint: HOST:4317',
    },
  },
  name: {
    state: 'missing',
    what: 'the receiver’s name has no address here, or no name server answers',
    hints: {
      any: 'getent hosts HOST must print an address: correct the name, /etc/hosts or /etc/resolv.conf',
      container: 'docker run --add-host=HOST:ADDRESS, or --dns=ADDRESS',
      kubernetes:
        'dnsPolicy: ClusterFirstWithHostNet, which hostNetwork: true takes for names of the cluster',
    },
  },
  connect: {
    state: 'missing',
    what: 'nothing takes a TCP connection at the address within three seconds',
    hints: {
      any: 'start the receiver, and let the port through firewalls: nc -vz HOST PORT',
      container: 'docker run --network=host: in a container 127.0.0.1 is the container itself',
      kubernetes: 'a NetworkPolicy that lets svc out to the receiver’s port; 127.0.0.1 is the pod itself',
    },
  },
  plain_text: {
    state: 'missing',
    what: 'the receiver speaks no TLS, and TLS is configured',
    hints: { config: 'otlp.insecure: true, and http:// or no scheme in otlp.endpoint' },
  },
  wants_tls: {
    state: 'missing',
    what: 'the receiver speaks TLS, and plain text is configured',
    hints: { config: 'otlp.insecure: false, and https:// or no scheme in otlp.endpoint' },
  },
  authority: {
    state: 'missing',
    what: 'the receiver’s certificate is from an authority that is not known here',
    hints: { config: 'otlp.tls.ca_file: FILE, with the certificate of the authority in PEM' },
  },
  certificate_name: {
    state: 'missing',
    what: 'the receiver’s certificate is for another name',
    hints: { config: 'otlp.tls.server_name: NAME, or the name of the certificate in otlp.endpoint' },
  },
  expired: {
    state: 'missing',
    what: 'the receiver’s certificate is not valid now',
    hints: { any: 'renew the receiver’s certificate; check the clock of this host: date -u' },
  },
  client_certificate: {
    state: 'missing',
    what: 'the receiver asks for a certificate of svc, or refuses the one it is shown',
    hints: {
      config: 'otlp.tls: {cert_file: FILE, key_file: FILE}, from an authority that the receiver trusts',
    },
  },
  files: {
    state: 'missing',
    what: 'a file of `otlp.tls` cannot be read, is no PEM, or key and certificate do not belong together',
    hints: {
      any: 'chgrp svc FILE && chmod 640 FILE; openssl x509 -noout -in FILE must accept it',
      container: 'docker run -v /etc/svc:/etc/svc:ro',
      kubernetes: 'volumes: [{name: tls, secret: {secretName: svc-otlp}}], mounted where the keys say',
    },
  },
  tls: {
    state: 'missing',
    what: 'the TLS handshake fails for another reason: no common version, or no TLS at all',
    hints: {
      any: 'openssl s_client -alpn h2 -connect HOST:PORT shows what the receiver speaks',
      config: 'otlp.insecure: true, if it speaks plain text',
    },
  },
  no_grpc: {
    state: 'missing',
    what: 'something answers that speaks no gRPC: a web server, a proxy without HTTP/2, or OTLP over HTTP',
    hints: {
      config:
        'otlp.endpoint: HOST:4317, the port of OTLP over gRPC; for OTLP over HTTP (4318) otlp.protocol: http/protobuf',
    },
  },
  no_http: {
    state: 'missing',
    what: 'something answers that speaks no HTTP/1.1, as the port of OTLP over gRPC does',
    hints: { config: 'otlp.protocol: grpc, or otlp.endpoint: http://HOST:4318, the port of OTLP over HTTP' },
  },
  path: {
    state: 'missing',
    what: 'the receiver takes no OTLP at this path (HTTP 404 or 405)',
    lose: 'these signals: what waits is kept, and what comes is dropped and counted',
    hints: {
      config:
        'otlp.endpoint: without /v1/traces, which svc puts behind it; otlp.<signal>.endpoint: with the whole path',
      any: 'let the receiver take the signal, or switch it off: otlp.<signal>: {enabled: false}',
    },
  },
  unauthenticated: {
    state: 'missing',
    what: 'the receiver wants credentials, or does not know those that it is shown',
    hints: { config: `otlp.headers: {Authorization: "Bearer \${file:/etc/svc/otlp-token}"}` },
  },
  forbidden: {
    state: 'missing',
    what: 'the receiver knows the credentials, and they do not allow this',
    hints: { any: 'let the receiver’s operator allow these signals for this token or certificate' },
  },
  unimplemented: {
    state: 'limited',
    what: 'the receiver does not take this signal',
    lose: 'these signals: they are dropped and counted',
    hints: {
      any: 'let the receiver take the signal: in the OpenTelemetry Collector a pipeline under service.pipelines',
      config: 'otlp.<signal>: {enabled: false}, or otlp.<signal>.endpoint: HOST:4317 of one that takes it',
    },
  },
  lost: {
    state: 'limited',
    what: 'the connection ends without an answer: a receiver that restarts, a proxy without one behind it, or a refusal of the certificate of svc',
    hints: {
      any: 'look at the log of the receiver, and of the proxy before it',
      config: 'otlp.tls: {cert_file: FILE, key_file: FILE}, from an authority that the receiver trusts',
    },
  },
  unavailable: {
    state: 'limited',
    what: 'the receiver is there and takes nothing at the moment; svc queues and tries again',
    hints: { any: 'look at the receiver’s own log and load; svc needs nothing' },
  },
  refused: {
    state: 'unknown',
    what: 'the receiver refuses an empty request with another error; it may still take telemetry',
    hints: {
      any: 'look at the receiver’s own log; svc_export_errors_total tells whether telemetry is refused',
    },
  },
} as const satisfies Record<string, Fault>

export type ReceiverFault = keyof typeof receiverFaults
