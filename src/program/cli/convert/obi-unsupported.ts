// Settings of OBI without a key in svc (devdocs/config/CONFIG.md of opentelemetry-ebpf-instrumentation, 0.8): each row
// has a path in the YAML, and a variable without OTEL_EBPF_; `-` if there is none.

interface Group {
  /** Why there is no key, and what to do. */
  readonly why: string
  /** Nothing to do: svc does it anyway, or does not need it. */
  readonly needsNone?: true
  readonly rows: string
}

export const groups: readonly Group[] = [
  {
    why: 'svc sizes its buffers and caches automatically, within limits',
    needsNone: true,
    rows: `channel_buffer_len CHANNEL_BUFFER_LEN
      channel_send_timeout CHANNEL_SEND_TIMEOUT
      channel_send_timeout_panic CHANNEL_SEND_TIMEOUT_PANIC
      ebpf.batch_length BPF_BATCH_LENGTH
      ebpf.batch_timeout BPF_BATCH_TIMEOUT
      ebpf.wakeup_len BPF_WAKEUP_LEN
      ebpf.couchbase_db_cache_size COUCHBASE_DB_CACHE_SIZE
      ebpf.kafka_topic_uuid_cache_size OTEL_KAFKA_TOPIC_UUID_CACHE_SIZE
      ebpf.mongo_requests_cache_size BPF_MONGO_REQUESTS_CACHE_SIZE
      ebpf.mssql_prepared_statements_cache_size BPF_MSSQL_PREPARED_STATEMENTS_CACHE_SIZE
      ebpf.mysql_prepared_statements_cache_size BPF_MYSQL_PREPARED_STATEMENTS_CACHE_SIZE
      ebpf.postgres_prepared_statements_cache_size BPF_POSTGRES_PREPARED_STATEMENTS_CACHE_SIZE
      ebpf.redis_db_cache.enabled BPF_REDIS_DB_CACHE_ENABLED
      ebpf.redis_db_cache.max_size BPF_REDIS_DB_CACHE_MAX_SIZE
      ebpf.maps_config.global_scale_factor -
      ebpf.high_request_volume BPF_HIGH_REQUEST_VOLUME
      otel_metrics_export.reporters_cache_len METRICS_REPORT_CACHE_LEN
      otel_traces_export.reporters_cache_len TRACES_REPORT_CACHE_LEN
      prometheus_export.service_cache_size -
      internal_metrics.prometheus.service_cache_size -
      internal_metrics.bpf_metric_scrape_interval BPF_METRIC_SCRAPE_INTERVAL
      name_resolver.cache_expiry NAME_RESOLVER_CACHE_TTL
      name_resolver.cache_len NAME_RESOLVER_CACHE_LEN
      network.cache_active_timeout NETWORK_CACHE_ACTIVE_TIMEOUT
      network.cache_max_flows NETWORK_CACHE_MAX_FLOWS
      network.deduper NETWORK_DEDUPER
      network.deduper_fc_ttl NETWORK_DEDUPER_FC_TTL`,
  },
  {
    why: 'svc chooses based on the kernel',
    needsNone: true,
    rows: `ebpf.bpf_fs_path BPF_FS_PATH
      ebpf.force_bpf_map_reader FORCE_BPF_MAP_READER
      ebpf.override_bpfloop_enabled OVERRIDE_BPF_LOOP_ENABLED
      ebpf.traffic_control_backend BPF_TC_BACKEND
      ebpf.track_request_headers BPF_TRACK_REQUEST_HEADERS
      discovery.skip_go_specific_tracers SKIP_GO_SPECIFIC_TRACERS
      discovery.bpf_pid_filter_off BPF_PID_FILTER_OFF
      network.source NETWORK_SOURCE
      network.sampling NETWORK_SAMPLING
      network.listen_interfaces NETWORK_LISTEN_INTERFACES
      network.listen_poll_period NETWORK_LISTEN_POLL_PERIOD
      network.guess_ports NETWORK_GUESS_PORTS`,
  },
  {
    why: 'svc sees processes as they start, and watches Kubernetes',
    needsNone: true,
    rows: `discovery.min_process_age MIN_PROCESS_AGE
      discovery.poll_interval DISCOVERY_POLL_INTERVAL
      discovery.excluded_linux_system_paths -
      discovery.default_otlp_grpc_port DEFAULT_OTLP_GRPC_PORT
      attributes.kubernetes.disable_informers KUBE_DISABLE_INFORMERS
      attributes.kubernetes.informers_resync_period KUBE_INFORMERS_RESYNC_PERIOD
      attributes.kubernetes.informers_sync_timeout KUBE_INFORMERS_SYNC_TIMEOUT
      attributes.kubernetes.meta_cache_address KUBE_META_CACHE_ADDRESS
      attributes.kubernetes.meta_restrict_local_node KUBE_META_RESTRICT_LOCAL_NODE
      attributes.kubernetes.reconnect_initial_interval KUBE_RECONNECT_INITIAL_INTERVAL
      attributes.metadata_retry.max_interval METADATA_RETRY_MAX_INTERVAL
      attributes.metadata_retry.start_interval METADATA_RETRY_START_INTERVAL
      attributes.metadata_retry.timeout METADATA_RETRY_TIMEOUT`,
  },
  {
    why: 'svc does not change applications: it injects no agent and sends no signal',
    needsNone: true,
    rows: `javaagent.attach_timeout JAVAAGENT_ATTACH_TIMEOUT
      javaagent.debug JAVAAGENT_DEBUG
      javaagent.debug_instrumentation JAVAAGENT_DEBUG_INSTRUMENTATION
      javaagent.enabled JAVAAGENT_ENABLED
      nodejs.enabled NODEJS_ENABLED
      discovery.disabled_route_harvesters -
      discovery.route_harvester_timeout ROUTE_HARVESTER_TIMEOUT
      discovery.route_harvester_advanced.java_harvest_delay JAVA_ROUTE_HARVEST_DELAY`,
  },
  {
    why: 'for debugging OBI; with svc use "svc tap", "svc explain" and "svc diagnostics"',
    needsNone: true,
    rows: `trace_printer TRACE_PRINTER
      log_config LOG_CONFIG
      profile_port PROFILE_PORT
      ebpf.protocol_debug_print PROTOCOL_DEBUG_PRINT
      ebpf.disable_black_box_cp BPF_DISABLE_BLACK_BOX_CP
      otel_metrics_export.otel_sdk_log_level SDK_LOG_LEVEL
      network.print_flows NETWORK_PRINT_FLOWS
      stats.print_stats STATS_PRINT_STATS
      internal_metrics.exporter INTERNAL_METRICS_EXPORTER`,
  },
  {
    why: 'svc does not serve request metrics for scraping; set otlp.endpoint to an OTLP receiver, such as Prometheus 3 with --web.enable-otlp-receiver',
    rows: `prometheus_export.port PROMETHEUS_PORT
      prometheus_export.path PROMETHEUS_PATH
      prometheus_export.allow_service_graph_self_references PROMETHEUS_ALLOW_SERVICE_GRAPH_SELF_REFERENCES
      prometheus_export.buckets -
      prometheus_export.disable_build_info PROMETHEUS_DISABLE_BUILD_INFO
      prometheus_export.exemplar_filter PROMETHEUS_EXEMPLAR_FILTER
      prometheus_export.extra_resource_attributes PROMETHEUS_EXTRA_RESOURCE_ATTRIBUTES
      prometheus_export.extra_span_resource_attributes PROMETHEUS_EXTRA_SPAN_RESOURCE_ATTRIBUTES
      prometheus_export.features PROMETHEUS_FEATURES
      prometheus_export.instrumentations PROMETHEUS_INSTRUMENTATIONS
      prometheus_export.ttl PROMETHEUS_TTL
      prometheus_export.native_histogram.bucket_factor PROMETHEUS_NATIVE_HISTOGRAM_BUCKET_FACTOR
      prometheus_export.native_histogram.max_bucket_number PROMETHEUS_NATIVE_HISTOGRAM_MAX_BUCKET_NUMBER
      prometheus_export.native_histogram.min_reset_duration PROMETHEUS_NATIVE_HISTOGRAM_MIN_RESET_DURATION
      prometheus_export.span_metrics_service_cache_size -`,
  },
  {
    why: 'svc detects the name of each service; set OTEL_SERVICE_NAME in the environment of the application, which svc reads',
    rows: `service_name OTEL_SERVICE_NAME
      - SERVICE_NAME
      service_namespace SERVICE_NAMESPACE
      attributes.kubernetes.meta_source_labels.service_name -
      attributes.kubernetes.meta_source_labels.service_namespace -
      attributes.kubernetes.service_name_template SERVICE_NAME_TEMPLATE
      attributes.kubernetes.resource_labels -`,
  },
  {
    why: 'svc emits the metrics and attributes of the semantic conventions; drop some with pipeline.transform',
    rows: `attributes.select -
      attributes.extra_group_attributes -
      attributes.metric_span_names_limit METRIC_SPAN_NAMES_LIMIT
      attributes.rename_unresolved_hosts RENAME_UNRESOLVED_HOSTS
      attributes.rename_unresolved_hosts_incoming RENAME_UNRESOLVED_HOSTS_INCOMING
      attributes.rename_unresolved_hosts_outgoing RENAME_UNRESOLVED_HOSTS_OUTGOING
      filter.application -
      filter.network -
      filter.stats -
      otel_metrics_export.allow_service_graph_self_references ALLOW_SERVICE_GRAPH_SELF_REFERENCES
      otel_metrics_export.buckets -
      otel_metrics_export.extra_span_resource_attributes EXTRA_SPAN_RESOURCE_ATTRIBUTES
      otel_metrics_export.ttl METRICS_TTL
      metrics.features -
      metrics.allow_service_graph_self_references -
      network.cidrs NETWORK_CIDRS
      network.direction NETWORK_DIRECTION
      network.exclude_protocols NETWORK_EXCLUDE_PROTOCOLS
      network.protocols NETWORK_PROTOCOLS
      network.agent_ip NETWORK_AGENT_IP
      network.agent_ip_iface NETWORK_AGENT_IP_IFACE
      network.agent_ip_type NETWORK_AGENT_IP_TYPE
      network.exclude_interfaces NETWORK_EXCLUDE_INTERFACES
      attributes.kubernetes.drop_external NETWORK_DROP_EXTERNAL
      stats.agent_ip STATS_AGENT_IP
      stats.agent_ip_iface STATS_AGENT_IP_IFACE
      stats.agent_ip_type STATS_AGENT_IP_TYPE
      stats.cidrs STATS_CIDRS
      internal_metrics.prometheus.buckets -
      internal_metrics.prometheus.features -
      internal_metrics.prometheus.instrumentations -
      internal_metrics.prometheus.ttl -
      internal_metrics.prometheus.exemplar_filter -
      internal_metrics.prometheus.disable_build_info -
      internal_metrics.prometheus.extra_resource_attributes -
      internal_metrics.prometheus.extra_span_resource_attributes -
      internal_metrics.prometheus.allow_service_graph_self_references -`,
  },
  {
    why: 'svc does not look up locations or names of addresses; do it where the data is stored',
    rows: `name_resolver.sources NAME_RESOLVER_SOURCES
      name_resolver.route53.hosted_zone_ids NAME_RESOLVER_ROUTE53_HOSTED_ZONE_IDS
      network.geo_ip.cache_expiry GEOIP_CACHE_TTL
      network.geo_ip.cache_len GEOIP_CACHE_LEN
      network.geo_ip.ipinfo.path GEOIP_IPINFO_PATH
      network.geo_ip.maxmind.asn_path GEOIP_MAXMIND_ASN_PATH
      network.geo_ip.maxmind.country_path GEOIP_MAXMIND_COUNTRY_PATH
      network.reverse_dns.cache_expiry REVERSE_DNS_CACHE_TTL
      network.reverse_dns.cache_len REVERSE_DNS_CACHE_LEN
      network.reverse_dns.type REVERSE_DNS_TYPE
      - NETWORK_GEOIP_CACHE_TTL
      - NETWORK_GEOIP_CACHE_LEN
      - NETWORK_GEOIP_IPINFO_PATH
      - NETWORK_GEOIP_MAXMIND_ASN_PATH
      - NETWORK_GEOIP_MAXMIND_COUNTRY_PATH
      - NETWORK_REVERSE_DNS_CACHE_TTL
      - NETWORK_REVERSE_DNS_CACHE_LEN
      - NETWORK_REVERSE_DNS_TYPE
      stats.geo_ip -
      stats.reverse_dns -`,
  },
  {
    why: 'svc reads only the payload that its protocols need; get these spans from the application',
    rows: `ebpf.buffer_sizes.http BPF_BUFFER_SIZE_HTTP
      ebpf.buffer_sizes.kafka BPF_BUFFER_SIZE_KAFKA
      ebpf.buffer_sizes.mssql BPF_BUFFER_SIZE_MSSQL
      ebpf.buffer_sizes.mysql BPF_BUFFER_SIZE_MYSQL
      ebpf.buffer_sizes.postgres BPF_BUFFER_SIZE_POSTGRES
      ebpf.heuristic_sql_detect HEURISTIC_SQL_DETECT
      ebpf.payload_extraction.http.aws.enabled HTTP_AWS_ENABLED
      ebpf.payload_extraction.http.elasticsearch.enabled HTTP_ELASTICSEARCH_ENABLED
      ebpf.payload_extraction.http.enrichment.enabled HTTP_ENRICHMENT_ENABLED
      ebpf.payload_extraction.http.enrichment.rules -
      ebpf.payload_extraction.http.enrichment.policy.default_action -
      ebpf.payload_extraction.http.enrichment.policy.obfuscation_string HTTP_ENRICHMENT_OBFUSCATION_STRING
      ebpf.payload_extraction.http.genai.anthropic.enabled HTTP_ANTHROPIC_ENABLED
      ebpf.payload_extraction.http.genai.bedrock.enabled HTTP_BEDROCK_ENABLED
      ebpf.payload_extraction.http.genai.gemini.enabled HTTP_GEMINI_ENABLED
      ebpf.payload_extraction.http.genai.mcp.enabled HTTP_MCP_ENABLED
      ebpf.payload_extraction.http.genai.openai.enabled HTTP_OPENAI_ENABLED
      ebpf.payload_extraction.http.genai.qwen.enabled HTTP_QWEN_ENABLED
      ebpf.payload_extraction.http.graphql.enabled HTTP_GRAPHQL_ENABLED
      ebpf.payload_extraction.http.jsonrpc.enabled HTTP_JSONRPC_ENABLED
      ebpf.payload_extraction.http.sqlpp.enabled HTTP_SQLPP_ENABLED
      ebpf.payload_extraction.http.sqlpp.endpoint_patterns HTTP_SQLPP_ENDPOINT_PATTERNS
      ebpf.instrument_cuda INSTRUMENT_CUDA`,
  },
  {
    why: 'svc does not write trace ids into logs; it links log lines that contain one to their trace (agent.logs.parse.trace_context)',
    rows: `ebpf.log_enricher.async_writer_channel_len BPF_LOG_ENRICHER_ASYNC_WRITER_CHANNEL_LEN
      ebpf.log_enricher.async_writer_workers BPF_LOG_ENRICHER_ASYNC_WRITER_WORKERS
      ebpf.log_enricher.cache_size BPF_LOG_ENRICHER_CACHE_SIZE
      ebpf.log_enricher.cache_ttl BPF_LOG_ENRICHER_CACHE_TTL
      ebpf.log_enricher.services -`,
  },
  {
    why: 'svc tracks requests within its own limits; there is no setting',
    needsNone: true,
    rows: `ebpf.http_request_timeout BPF_HTTP_REQUEST_TIMEOUT
      ebpf.dns_request_timeout BPF_DNS_REQUEST_TIMEOUT
      ebpf.max_transaction_time BPF_MAX_TRANSACTION_TIME`,
  },
  {
    why: 'svc creates no spans for applications that send their own, but still their metrics',
    needsNone: true,
    rows: `discovery.exclude_otel_instrumented_services EXCLUDE_OTEL_INSTRUMENTED_SERVICES
      discovery.exclude_otel_instrumented_services_span_metrics EXCLUDE_OTEL_INSTRUMENTED_SERVICES_SPAN_METRICS`,
  },
  {
    why: 'svc excludes only itself; list other exclusions in discovery.exclude',
    rows: `discovery.default_exclude_instrument -
      discovery.default_exclude_services -`,
  },
  {
    why: 'svc selects by port, path of the executable, service name and Kubernetes; write such an entry in discovery.instrument',
    rows: `target_pids TARGET_PID
      - AUTO_TARGET_LANGUAGE`,
  },
  {
    why: 'svc identifies instances by process and host; set resource.attributes for more',
    rows: `attributes.instance_id.dns HOSTNAME_DNS_RESOLUTION
      attributes.instance_id.override_hostname HOSTNAME`,
  },
  {
    why: 'svc limits its queues by bytes; set queues.traces.mem_limit if the default is too small',
    rows: 'otel_traces_export.queue_size OTLP_TRACES_QUEUE_SIZE',
  },
  {
    why: 'svc replaces segments by {name} and *; there is no setting',
    needsNone: true,
    rows: 'routes.wildcard_char -',
  },
]
