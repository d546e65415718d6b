import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { soak } from '../../../test/helpers/soak.ts'
import { LogRecord } from './log.ts'
import {
  auditedSyscalls,
  fillSecurityRecord,
  type SecurityEvent,
  type SecurityEventType,
  securityEventFaults,
  securityEventTypes,
  securityMetrics,
} from './security.ts'

const timeUs = 1_700_000_000_000_000
const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'

/** An event with all attributes of its row, its severities, and the SeverityNumber and text of each. */
function check<T extends SecurityEventType>(
  type: T,
  severities: Readonly<Record<string, readonly [number, string]>>,
  attributes: SecurityEvent<T>['attributes'],
): void {
  assert.deepEqual(securityEventTypes[type].severities, Object.keys(severities))
  for (const [severity, [number, text]] of Object.entries(severities)) {
    const record = new LogRecord()
    const event = { type, severity, timeUs, body: `${type} happened`, attributes } as SecurityEvent<T>
    fillSecurityRecord({ ...event, traceId, spanId }, record)
    assert.equal(record.timeUs, timeUs)
    assert.equal(record.severity, number)
    assert.equal(record.severityText, text)
    assert.equal(record.body, `${type} happened`)
    assert.equal(Buffer.from(record.traceId).toString('hex'), traceId)
    assert.equal(Buffer.from(record.spanId).toString('hex'), spanId)
    assert.deepEqual(record.attributes.toObject(), {
      'security.event_type': type,
      'security.severity': severity,
      ...attributes,
      trace_id: traceId,
      span_id: spanId,
    })
    assert.equal(Object.keys(attributes).length, Object.keys(securityEventTypes[type].attributes).length)
  }
}

const info = { info: [9, 'INFO'] } as const
const warning = { warning: [13, 'WARNING'] } as const
const critical = { critical: [21, 'CRITICAL'] } as const

test('process_exec is a record of its row', () => {
  check(
    'process_exec',
    { ...info, ...warning },
    {
      'process.pid': 17,
      'process.ppid': 1,
      'process.executable.path': '/usr/bin/id',
      'process.command_line': 'id -u',
      'process.owner': 'root',
      'process.cwd': '/',
      'k8s.pod.name': 'shop-1',
    },
  )
})

test('privilege_escalation is a record of its row', () => {
  check(
    'privilege_escalation',
    { ...warning, ...critical },
    {
      'syscall.name': 'setuid',
      'syscall.args': ['0'],
      'process.pid': 17,
      'process.executable.path': '/usr/bin/su',
      'process.owner': 'www-data',
      'process.owner.uid': 33,
      'process.target.uid': 0,
    },
  )
})

test('kernel_module is a record of its row', () => {
  check('kernel_module', critical, {
    'syscall.name': 'finit_module',
    'module.name': 'rootkit',
    'module.path': '/tmp/rootkit.ko',
    'process.pid': 17,
    'process.executable.path': '/usr/bin/kmod',
  })
})

test('file_integrity is a record of its row', () => {
  check('file_integrity', warning, {
    'file.path': '/etc/passwd',
    'file.event': 'modify',
    'file.owner': 'root',
    'file.permissions': '0644',
    'process.pid': 17,
    'process.executable.path': '/usr/bin/vi',
    'process.owner': 'root',
  })
})

test('container_escape is a record of its row', () => {
  check('container_escape', critical, {
    'escape.type': 'namespace',
    'escape.namespace': 'mnt',
    'container.id': 'ab'.repeat(32),
    'container.name': 'shop',
    'k8s.pod.name': 'shop-1',
    'process.pid': 17,
  })
})

test('privileged_operation is a record of its row', () => {
  check('privileged_operation', warning, {
    'syscall.name': 'mount',
    'mount.source': '/dev/sda1',
    'mount.target': '/mnt',
    'container.id': 'ab'.repeat(32),
    'container.privileged': true,
  })
})

const least: SecurityEvent<'file_integrity'> = {
  type: 'file_integrity',
  severity: 'warning',
  timeUs,
  body: 'changed',
  attributes: { 'file.path': '/etc/shadow', 'file.event': 'write' },
}

test('an event outside of a trace has no ids, also in a record that had some', () => {
  const record = new LogRecord()
  fillSecurityRecord({ ...least, traceId, spanId }, record)
  fillSecurityRecord(least, record)
  assert.ok(record.traceId.every(byte => byte === 0) && record.spanId.every(byte => byte === 0))
  assert.deepEqual(record.attributes.toObject(), {
    'security.event_type': 'file_integrity',
    'security.severity': 'warning',
    'file.path': '/etc/shadow',
    'file.event': 'write',
  })
})

test('an event that does not fit its row is refused with all its faults', () => {
  const refused = (change: Record<string, unknown>, want: readonly string[]) => {
    const event = { ...least, ...change } as SecurityEvent
    assert.deepEqual(securityEventFaults(event), want)
    const record = new LogRecord()
    assert.throws(() => fillSecurityRecord(event, record), TypeError)
    assert.equal(record.body, '')
  }
  refused({ type: 'toString' }, [
    'type must be one of process_exec, privilege_escalation, kernel_module, file_integrity, container_escape, privileged_operation',
  ])
  refused({ severity: 'critical' }, ['severity must be warning'])
  refused({ type: 'process_exec', severity: 'critical', attributes: {} }, [
    'severity must be info or warning',
    'process.pid is missing',
    'process.executable.path is missing',
  ])
  refused({ timeUs: Number.NaN, body: '' }, [
    'timeUs must be microseconds since 1970',
    'body must describe what happened',
  ])
  refused({ traceId: 'XY' }, ['traceId must be 32 hexadecimal digits in lower case, not all of them 0'])
  refused({ traceId, spanId: '0'.repeat(16) }, [
    'spanId must be 16 hexadecimal digits in lower case, not all of them 0',
  ])
  refused({ spanId }, ['spanId needs a traceId'])
  refused({ attributes: null }, ['attributes must be an object'])
  refused({ attributes: { ...least.attributes, 'process.pid': 1.5, 'container.id': '' } }, [
    'process.pid must be a whole number, 0 or more',
    'container.id is not an attribute of this event',
  ])
  refused({ attributes: { 'file.path': 1, 'file.event': '' } }, ['file.path must be a string'])
  const { attributes } = least
  assert.throws(
    () =>
      fillSecurityRecord(
        { ...least, attributes: { ...attributes, 'file.path': 7 as never } },
        new LogRecord(),
      ),
    {
      message: 'cannot record the security event file_integrity: file.path must be a string',
    },
  )
})

test('whatever is given as an event is either recorded or refused', () => {
  const types = fc.constantFrom(...Object.keys(securityEventTypes), 'other', 3)
  const keys = fc.constantFrom(
    'process.pid',
    'syscall.name',
    'syscall.args',
    'container.privileged',
    '__proto__',
  )
  const values = fc.oneof(fc.anything(), fc.nat(), fc.string(), fc.array(fc.string()))
  const event = fc.record({
    type: types,
    severity: fc.constantFrom('info', 'warning', 'critical', undefined),
    timeUs: fc.oneof(fc.double(), fc.constant(timeUs)),
    body: fc.oneof(fc.string(), fc.anything()),
    attributes: fc.oneof(fc.dictionary(keys, values), fc.anything()),
  })
  fc.assert(
    fc.property(event, given => {
      const faults = securityEventFaults(given as SecurityEvent)
      const record = new LogRecord()
      if (faults.length > 0)
        assert.throws(() => fillSecurityRecord(given as SecurityEvent, record), TypeError)
      else fillSecurityRecord(given as SecurityEvent, record)
    }),
    { numRuns: soak ? 20_000 : 500 },
  )
})

test('the system calls and the counters are those of the event model', () => {
  assert.equal(
    auditedSyscalls.join(),
    'execve,execveat,setuid,setgid,ptrace,init_module,finit_module,mount,setns',
  )
  assert.deepEqual(
    securityMetrics.map(({ name, labels }) => `${name}{${labels.join()}}`),
    [
      'security_events_total{event_type,severity}',
      'file_integrity_violations_total{path}',
      'container_escape_attempts_total{escape_type}',
    ],
  )
})
