import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publicEbpf, publicExport, publicStatus, uptimeText } from './documents.ts'
import type { EbpfDocument, ExportDocument, StatusDocument } from './types.ts'

test('uptime leaves leading zero units out and pads nothing', () => {
  const check = (seconds: number, want: string) => assert.equal(uptimeText(seconds * 1000), want)
  check(0, '0s')
  check(30.9, '30s')
  check(930, '15m30s')
  check(86_400 + 930, '24h15m30s')
  check(3605, '1h0m5s')
  check(-1, '0s')
})

test('what anybody may see has no path of others, and no words of a receiver', () => {
  const words = 'refused: process.command_line="SECRET" is too long'
  const ebpf = publicEbpf({
    backend: 'sock',
    tls: [{ path: '/home/SECRET/lib/libssl.so.3', reason: '/home/SECRET: denied', library: 'openssl' }],
    profiling: { without_unwind_table: [{ path: '/home/SECRET/app', reason: words }], files: 3 },
  } as unknown as EbpfDocument)
  const exporting = publicExport({
    endpoint: 'a:1',
    last_error: words,
    destinations: [{ endpoint: 'a:1', last_error: null, last_warning: words }],
  } as unknown as ExportDocument)
  const status = publicStatus({
    version: '1',
    last_run: { ended: 'fault', reason: 'uncaught error (no /home/SECRET)' },
    degraded: [
      { subsystem: 'export of traces', reason: words, hint: 'x' },
      { subsystem: 'ebpf', reason: 'no CAP_BPF', hint: 'y' },
      { subsystem: 'reload', reason: 'found the text "SECRET"', hint: 'z' },
    ],
    reload: { successful: false, reason: 'found the text "SECRET"', place: '/home/SECRET/svc.yaml:3:5' },
  } as unknown as StatusDocument)
  for (const document of [ebpf, exporting, status]) assert.ok(!JSON.stringify(document).includes('SECRET'))
  assert.deepEqual([ebpf.tls[0]!.path, ebpf.profiling.without_unwind_table[0]!.path], ['libssl.so.3', 'app'])
  assert.deepEqual([exporting.destinations[0]!.last_error, exporting.endpoint], [null, 'a:1'])
  assert.equal(status.reload.place, 'svc.yaml:3:5')
  assert.equal(status.last_run?.reason, 'uncaught error')
  assert.deepEqual(status.degraded[1], { subsystem: 'ebpf', reason: 'no CAP_BPF', hint: 'y' })
})
