// Writes the generated reference pages. With --check writes nothing and exits 1 naming the files that are stale.
import { jsonSchema } from '../src/config/index.ts'
import { apiPage } from './api-page.ts'
import { attachmentsPage } from './attachments-page.ts'
import { commandsPage } from './commands-page.ts'
import { configurationPage } from './configuration-page.ts'
import { writeGenerated } from './generated.ts'
import { measuredPage, measuredPages } from './measured-pages.ts'
import { metricsPage } from './metrics-page.ts'
import { needsPage } from './needs-page.ts'
import { protocolsPage } from './protocols-page.ts'
import { selfMetricsPage } from './self-metrics-page.ts'
import { sentMetricsPage } from './sent-metrics-page.ts'
import { spansPage } from './spans-page.ts'
import { troubleshootingPage } from './troubleshooting-page.ts'

writeGenerated('tools/gen-docs.ts', [
  ...measuredPages.map(file => ({ file, text: () => measuredPage(file) })),
  { file: 'docs/troubleshooting.md', text: troubleshootingPage },
  { file: 'docs/reference/configuration.md', text: configurationPage },
  { file: 'docs/reference/api.md', text: apiPage },
  { file: 'docs/reference/needs.md', text: needsPage },
  { file: 'docs/reference/metrics.md', text: metricsPage },
  { file: 'docs/reference/self-metrics.md', text: selfMetricsPage },
  { file: 'docs/reference/sent-metrics.md', text: sentMetricsPage },
  { file: 'docs/reference/protocols.md', text: protocolsPage },
  { file: 'docs/reference/spans.md', text: spansPage },
  { file: 'docs/reference/commands.md', text: commandsPage },
  { file: 'docs/reference/attachments.md', text: attachmentsPage },
  { file: 'docs/reference/config.schema.json', text: () => `${JSON.stringify(jsonSchema(), null, 1)}\n` },
])
