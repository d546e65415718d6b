import type { Fault } from '../../kernel/need.ts'

/** Faults between this host and a receiver, from name resolution to the answer. */
export const receiverFaults = {
  none: {
    state: 'note',
    what: 'no endpoint is configured, so no data leaves this host',
    hints: { config: 'otlp.endpoint: HOST:4317' },
  },
  settings: {
    state: 'missing',
    what: 'the endpoint or a header is invalid',
    hints: {
      any: 'correct it in the configuration or in the environment of svc (HTTPS_PROXY)',
      config: 'otlp.endpoint: HOST:4317',
    },
  },
  name: {
    state: 'missing',
    what: 'the name of the receiver does not resolve, or no name server answers',
    hints: {
      any: 'getent hosts HOST must print an address: correct the name, /etc/hosts or /etc/resolv.conf',
      container: 'docker run --add-host=HOST:ADDRESS, or --dns=ADDRESS',
      kubernetes: 'dnsPolicy: ClusterFirstWithHostNet, which hostNetwork: true needs for cluster names',
    },
  },
  connect: {
    state: 'missing',
    what: 'no TCP connection to the address within three seconds',
    hints: {
      any: 'start the receiver, and open the port in firewalls: nc -vz HOST PORT',
      container: 'docker run --network=host: in a container 127.0.0.1 is the container itself',
      kubernetes: 'a NetworkPolicy that lets svc reach the receiver’s port; 127.0.0.1 is the pod itself',
    },
  },
  plain_text: {
    state: 'missing',
    what: 'TLS is configured, but the receiver does not use TLS',
    hints: { config: 'otlp.insecure: true, and http:// or no scheme in otlp.endpoint' },
  },
  wants_tls: {
    state: 'missing',
    what: 'plain text is configured, but the receiver uses TLS',
    hints: { config: 'otlp.insecure: false, and https:// or no scheme in otlp.endpoint' },
  },
  authority: {
    state: 'missing',
    what: 'the receiver’s certificate is from an unknown CA',
    hints: { config: 'otlp.tls.ca_file: FILE, with the CA certificate in PEM format' },
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
    what: 'the receiver requires a client certificate, or rejects the one that svc sends',
    hints: {
      config: 'otlp.tls: {cert_file: FILE, key_file: FILE}, from a CA that the receiver trusts',
    },
  },
  files: {
    state: 'missing',
    what: 'a file of `otlp.tls` cannot be read, is not PEM, or key and certificate do not match',
    hints: {
      any: 'chgrp svc FILE && chmod 640 FILE; openssl x509 -noout -in FILE must accept it',
      container: 'docker run -v /etc/svc:/etc/svc:ro',
      kubernetes: 'volumes: [{name: tls, secret: {secretName: svc-otlp}}], mounted at the paths in the keys',
    },
  },
  tls: {
    state: 'missing',
    what: 'the TLS handshake fails for another reason: no common version, or not a TLS server',
    hints: {
      any: 'openssl s_client -alpn h2 -connect HOST:PORT shows what the receiver supports',
      config: 'otlp.insecure: true, if it uses plain text',
    },
  },
  no_grpc: {
    state: 'missing',
    what: 'the server does not speak gRPC: a web server, a proxy without HTTP/2, or OTLP over HTTP',
    hints: {
      config:
        'otlp.endpoint: HOST:4317, the port of OTLP over gRPC; for OTLP over HTTP (4318) otlp.protocol: http/protobuf',
    },
  },
  no_http: {
    state: 'missing',
    what: 'the server does not speak HTTP/1.1; it may be the port of OTLP over gRPC',
    hints: { config: 'otlp.protocol: grpc, or otlp.endpoint: http://HOST:4318, the port of OTLP over HTTP' },
  },
  path: {
    state: 'missing',
    what: 'the receiver does not accept OTLP at this path (HTTP 404 or 405)',
    impact: 'these signals: queued data is kept, new data is dropped and counted',
    hints: {
      config:
        'otlp.endpoint: without /v1/traces, which svc appends; otlp.<signal>.endpoint: with the full path',
      any: 'enable the signal in the receiver, or turn it off: otlp.<signal>: {enabled: false}',
    },
  },
  unauthenticated: {
    state: 'missing',
    what: 'the receiver requires credentials, or rejects those that svc sends',
    hints: { config: `otlp.headers: {Authorization: "Bearer \${file:/etc/svc/otlp-token}"}` },
  },
  forbidden: {
    state: 'missing',
    what: 'the receiver accepts the credentials, but they do not permit this',
    hints: { any: 'ask the operator of the receiver to allow these signals for this token or certificate' },
  },
  unimplemented: {
    state: 'limited',
    what: 'the receiver does not support this signal',
    impact: 'these signals: they are dropped and counted',
    hints: {
      any: 'enable the signal in the receiver: in the OpenTelemetry Collector, add a pipeline under service.pipelines',
      config:
        'otlp.<signal>: {enabled: false}, or otlp.<signal>.endpoint: HOST:4317 of a receiver that supports it',
    },
  },
  lost: {
    state: 'limited',
    what: 'the connection ends without an answer: the receiver is restarting, a proxy has no receiver behind it, or the client certificate of svc is rejected',
    hints: {
      any: 'check the log of the receiver, and of the proxy in front of it',
      config: 'otlp.tls: {cert_file: FILE, key_file: FILE}, from a CA that the receiver trusts',
    },
  },
  unavailable: {
    state: 'limited',
    what: 'the receiver is up but accepts no data at the moment; svc queues and retries',
    hints: { any: 'check the log and load of the receiver; no action in svc' },
  },
  refused: {
    state: 'unknown',
    what: 'the receiver rejects an empty request with another error; it may still accept telemetry',
    hints: {
      any: 'check the log of the receiver; svc_export_errors_total shows whether telemetry is rejected',
    },
  },
} as const satisfies Record<string, Fault>

export type ReceiverFault = keyof typeof receiverFaults
