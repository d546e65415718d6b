// The document about what is scraped.

import { count, flag, list, named, object, oneOf, record, text, time } from './schema.ts'

const labels = (description: string) => record(description, text('Its value.'))

const target = object('A target.', {
  url: text('What is asked.'),
  labels: labels('What its series get.'),
  discovered_labels: labels('As discovery told it, before relabelling.'),
  health: oneOf('How the last scrape went.', ['unknown', 'up', 'down']),
  error: text('Why the last scrape failed; empty where it did not.'),
  error_type: text('`connect`, `dns`, `tls`, `timeout`, `http_status`, `body_too_large`, `page`, …'),
  warning: text('What went wrong without failing the scrape, such as lines that were left out.'),
  last_scrape: time('When it began.'),
  duration_ms: count('Of the last scrape.'),
  interval_ms: count('Between two scrapes.'),
  timeout_ms: count('Longest time of one.'),
  samples: count('Of the last page that was read.'),
  series: count('Of them after relabelling.'),
  wire_bytes: count('Of the last page, as it came.'),
  scrapes: count('Since it is known.'),
  failures: count('Of them.'),
  missed: count('Moments that passed while the scrape before was not over.'),
  whole_reads: count('Pages whose series differed from those of the page before.'),
})

export const targetsDocument = named(
  'Targets',
  object('What is scraped.', {
    enabled: flag('Targets, or sources of targets, are configured.'),
    jobs: list(
      'Jobs: one for each of `targets` and of `scrape_configs`.',
      object('A job.', {
        name: text('`job_name`.'),
        up: count('Targets whose last scrape succeeded.'),
        down: count('Targets whose last scrape failed.'),
        unknown: count('Targets that were not scraped yet.'),
        dropped_total: count('Targets that are not scraped here.'),
        sources: list(
          'Where its targets come from.',
          object('A source.', {
            kind: text('`static`, `file`, `http`, `dns`, `docker` or `kubernetes`.'),
            connected: flag('It answers.'),
            reason: text('Why it does not; the targets that it told last stay.'),
            targets: count('That it told last.'),
          }),
        ),
        targets: list(
          'Those that are down come first; of all jobs together at most 1,000 are shown.',
          target,
        ),
        dropped: list(
          'At most 100.',
          object('A target that is not scraped here.', {
            discovered_labels: labels('As discovery told it.'),
            reason: text('`relabelling`, `shard`, or what is wrong with it.'),
          }),
        ),
      }),
    ),
  }),
)
