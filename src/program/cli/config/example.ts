/** A template. All of it is commented out, and it is also valid with one `#` less on each line. */
export const example = `## svc: /etc/svc/config.yaml
##
## Without this file svc observes its host, shows it at http://127.0.0.1:19090/ui, and sends no data anywhere. Each part
## below is a starting point: remove the "#" from the lines that you want. All keys: svc config --default. Problems in
## a file: svc validate FILE. Host checks: svc doctor.

## Receiver of traces, metrics, logs and profiles, over OTLP.
#otlp:
#  endpoint: collector.example.com:4317
#  # gRPC, or http/protobuf to port 4318.
#  protocol: grpc
#  # Without TLS, for a receiver on this host.
#  insecure: false
#  headers:
#    x-tenant: shop
#    # Read from a file, so that the secret is not in this one.
#    # authorization: "\${file:/etc/svc/token}"

## Resource attributes of all telemetry of this host.
#resource:
#  attributes:
#    deployment.environment.name: production

## Observation of the host.
#agent:
#  ebpf:
#    network:
#      # Only servers and clients on these ports; without this key, all ports.
#      include_ports: [80, 443, 8080]
#      sampling:
#        # Spans above this rate are counted, but not sent individually.
#        max_spans_per_second: 1000
#  profiling:
#    enabled: true
#    sample_rate: 19
#  logs:
#    # Container logs are collected automatically.
#    paths: [/var/log/nginx/*.log]
#  nodeexporter:
#    # Metrics of the host for Prometheus.
#    enabled: true
#    listen_address: 127.0.0.1:9100

## Redaction of personal data before it leaves this host.
#pipeline:
#  pii_redaction:
#    enabled: true
#  export:
#    queue:
#      # Queued data survives a restart.
#      enabled: true
#      directory: /var/lib/svc/queue

## Live page, API and commands that query a running agent.
#self_telemetry:
#  # Requests from other hosts need a token: self_telemetry.auth.
#  listen: 127.0.0.1:19090
#  ui:
#    window: 15m
#    max_memory: 24Mi
`
