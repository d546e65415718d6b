import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, defaults } from '../../config/index.ts'
import { shownText } from './shown-text.ts'

function configured(ui: object, redaction: object): Config {
  const config = defaults()
  return {
    ...config,
    self_telemetry: { ...config.self_telemetry, ui: { ...config.self_telemetry.ui, ...ui } },
    pipeline: { ...config.pipeline, pii_redaction: { ...config.pipeline.pii_redaction, ...redaction } },
  }
}

test('personal data and secrets are replaced in what is shown, though the pipeline leaves them', () => {
  const shown = shownText(defaults())
  assert.equal(shown('mail to jane@example.com went out'), 'mail to [REDACTED] went out')
  assert.equal(shown('GET /cart'), 'GET /cart')
  assert.equal(shown('hunter2', 'db.password'), '[REDACTED]')
  assert.equal(shown('10.0.0.7', 'server.address'), '10.0.0.7')
  assert.equal(shown(''), '')
})

test('whoever asks for it sees everything', () => {
  const shown = shownText(configured({ redact: false }, {}))
  assert.equal(shown('jane@example.com', 'password'), 'jane@example.com')
})

test('rules, replacement and allowed attributes of the pipeline hold, whatever its mode', () => {
  const rule = {
    name: 'order',
    type: 'regex',
    pattern: 'order-\\d+',
    enabled: true,
    mode: 'count',
    replacement: '',
  }
  const shown = shownText(
    configured({}, { rules: [rule], mode: 'hash', replacement: '***', allowed_attributes: ['token'] }),
  )
  assert.equal(shown('order-17 of jane@example.com'), '*** of jane@example.com')
  assert.equal(shown('order-17', 'token'), 'order-17')
})
