// The document about scrape targets.

import { count, flag, list, named, object, oneOf, record, text, time } from './schema.ts'

const labels = (description: string) => record(description, text('A value.'))

const target = object('A target.', {
  url: text('Scraped URL.'),
  labels: labels('Labels of its series.'),
  discovered_labels: labels('Labels from discovery, before relabelling.'),
  health: oneOf('Result of the last scrape.', ['unknown', 'up', 'down']),
  error: text('Why the last scrape failed; empty if it did not.'),
  error_type: text(
    'Type of error: `connect`, `dns`, `tls`, `timeout`, `http_status`, `body_too_large`, `page`, …',
  ),
  warning: text('Problem that did not fail the scrape, such as skipped lines.'),
  last_scrape: time('Start of the last scrape.'),
  duration_ms: count('Duration of the last scrape.'),
  interval_ms: count('Time between scrapes.'),
  timeout_ms: count('Maximum duration of a scrape.'),
  samples: count('Samples in the last page.'),
  series: count('Series after relabelling.'),
  wire_bytes: count('Size of the last page on the wire.'),
  scrapes: count('Scrapes since the target was discovered.'),
  failures: count('Failed scrapes.'),
  skipped: count('Scrapes skipped because the previous one was still running.'),
  series_changes: count('Pages with different series than the page before.'),
})

export const targetsDocument = named(
  'Targets',
  object('Scraped targets.', {
    enabled: flag('Targets, or sources of targets, are configured.'),
    jobs: list(
      'Jobs, one for each entry of `targets` and `scrape_configs`.',
      object('A job.', {
        name: text('`job_name`.'),
        up: count('Targets whose last scrape succeeded.'),
        down: count('Targets whose last scrape failed.'),
        unknown: count('Targets without a scrape yet.'),
        dropped_total: count('Targets not scraped by this agent.'),
        sources: list(
          'Sources of targets.',
          object('A source.', {
            kind: text('`static`, `file`, `http`, `dns`, `docker` or `kubernetes`.'),
            connected: flag('The source answers.'),
            reason: text('Why it does not answer; its last targets are kept.'),
            targets: count('Number of targets in its last answer.'),
          }),
        ),
        targets: list('Targets, those that are down first; at most 1,000 for all jobs together.', target),
        dropped: list(
          'Targets not scraped by this agent, at most 100.',
          object('A target not scraped by this agent.', {
            discovered_labels: labels('Labels from discovery.'),
            reason: text('`relabelling`, `shard`, or the error.'),
          }),
        ),
      }),
    ),
  }),
)
