/** A file to start with. All of it is a comment, and it is valid, too, with one `#` less on each line. */
export const example = `## svc: /etc/svc/config.yaml
##
## Without this file svc observes its host, shows it at http://127.0.0.1:19090/ui, and sends nothing anywhere. Each part
## below is a start: take the "#" from the lines that you want. All keys: svc config --default. What is wrong with a
## file: svc validate FILE. What this host can and cannot do: svc doctor.

## Where traces, metrics, logs and profiles are sent, over OTLP.
#otlp:
#  endpoint: collector.example.com:4317
#  # gRPC, or http/protobuf to port 4318.
#  protocol: grpc
#  # Without TLS, for a receiver on this host.
#  insecure: false
#  headers:
#    x-tenant: shop
#    # From a file, so that the secret stands nowhere else.
#    # authorization: "\${file:/etc/svc/token}"

## What all telemetry of this host says of itself.
#resource:
#  attributes:
#    deployment.environment.name: production

## What is observed on the host.
#agent:
#  ebpf:
#    network:
#      # Only servers and clients at these ports; all where it is left out.
#      include_ports: [80, 443, 8080]
#      sampling:
#        # Spans beyond it are counted, and not sent one by one.
#        max_spans_per_second: 1000
#  profiling:
#    enabled: true
#    sample_rate: 19
#  logs:
#    # Containers are followed by themselves.
#    paths: [/var/log/nginx/*.log]
#  nodeexporter:
#    # Metrics of the host for Prometheus.
#    enabled: true
#    listen_address: 127.0.0.1:9100

## What must not leave this host: personal data is redacted before it is sent.
#pipeline:
#  pii_redaction:
#    enabled: true
#  export:
#    queue:
#      # What waits for the receiver outlives a restart.
#      enabled: true
#      directory: /var/lib/svc/queue

## The page, the API and the commands that look at a running agent.
#self_telemetry:
#  # Answers to other hosts need a token: self_telemetry.auth.
#  listen: 127.0.0.1:19090
#  ui:
#    window: 15m
#    max_memory: 24Mi
`
