{{- /* Facts from the program's tables. Written by tools/gen-deploy.ts; do not edit. */ -}}
{{- define "svc.facts" -}}
run: "run"
doctor: "doctor"
capabilities: {"":["SYS_PTRACE","DAC_READ_SEARCH"],"agent.ebpf":["BPF","PERFMON"],"agent.profiling":["BPF","PERFMON","SYS_PTRACE","CHECKPOINT_RESTORE","DAC_READ_SEARCH","SYSLOG"]}
listen: {"management":":19090","metrics":":9100"}
live: "/livez"
healthy: "/healthz"
metricsPath: "/metrics"
hostMount: "/host"
configDirectory: "/etc/svc"
configFile: "/etc/svc/config.yaml"
stateDirectory: "/var/lib/svc"
runDirectory: "/run/svc"
logDirectories: ["/var/lib/docker/containers","/var/log/pods"]
agentConfig: {"resource":{"attributes":{"host.name":"${NODE_NAME}","k8s.node.name":"${NODE_NAME}"}},"agent":{"nodeexporter":{"path":{"procfs":"/host/proc","sysfs":"/host/sys","rootfs":"/host","udev":"/host/run/udev/data"},"textfile":{"directory":["/host/var/lib/node_exporter/textfile_collector"]}},"profiling":{"symbols":{"debuginfo_dirs":["/host/usr/lib/debug"]}}}}
ownNetworkConfig: {"agent":{"nodeexporter":{"collectors":{"arp":false,"conntrack":false,"ipvs":false,"netdev":false,"netstat":false,"nfs":false,"nfsd":false,"sockstat":false,"udp_queues":false}}}}
restartKeys: ["mode","service_name","instance_id","limits.memory","limits.cpu","resource.attributes","otlp.metrics.histograms","agent.ebpf.enabled","agent.ebpf.required","agent.ebpf.backend","agent.ebpf.ringbuf_size","agent.ebpf.perf_buffer_size","agent.ebpf.network.enabled","agent.ebpf.network.http","agent.ebpf.network.grpc","agent.ebpf.network.dns","agent.ebpf.network.sql","agent.ebpf.network.redis","agent.ebpf.network.memcached","agent.ebpf.network.mongodb","agent.ebpf.network.kafka","agent.ebpf.network.amqp","agent.ebpf.network.mqtt","agent.ebpf.network.nats","agent.ebpf.network.tls","agent.ebpf.network.tcp_metrics","agent.ebpf.network.flows","agent.ebpf.network.interfaces","agent.ebpf.network.capture_bytes","agent.ebpf.syscalls.enabled","agent.ebpf.syscalls.include","agent.ebpf.syscalls.exclude","agent.ebpf.process.enabled","agent.logs.position_file","agent.discovery.process_attributes","agent.nodeexporter.enabled","agent.nodeexporter.listen_address","agent.nodeexporter.tls.enabled","agent.nodeexporter.max_requests","pipeline.export.queue.enabled","pipeline.export.queue.directory","self_telemetry.enabled","self_telemetry.listen","self_telemetry.path","self_telemetry.prometheus_namespace","self_telemetry.tls.enabled","self_telemetry.admin_socket","self_telemetry.ui.enabled","self_telemetry.ui.window","self_telemetry.ui.max_memory"]
roles: {"pod":["/pods"],"service":["/services"],"endpoints":["/endpoints","/pods","/services"],"endpointslice":["discovery.k8s.io/endpointslices","/pods","/services"],"node":["/nodes"],"ingress":["networking.k8s.io/ingresses"]}
{{- end -}}
