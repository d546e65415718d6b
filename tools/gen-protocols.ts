// Writes bpf/include/gen/protocols.h from src/signals/traces/protocols, so that a protocol is listed once. --check
// compares instead, and exits 1 if it is stale.
import { confidences } from '../src/foundation/model/protocol.ts'
import { protocols } from '../src/signals/traces/protocols/index.ts'
import { writeGenerated } from './generated.ts'

const recognised = confidences.flatMap(confidence => protocols.filter(unit => unit.confidence === confidence))
const counted = protocols.filter(unit => unit.counted)

/** Joins terms, on as many lines as needed; `none` if there are no terms. */
function joined(terms: readonly string[], operator: string, none: string): string {
  return terms.length === 0 ? none : `(${terms.join(` ${operator} \\\n\t `)})`
}

const byConfidence = confidences.map(confidence => {
  const bits = protocols
    .filter(unit => unit.confidence === confidence)
    .map(({ name }) => `1U << svc_protocol_${name}`)
  return `#define BY_${confidence.toUpperCase()} \\\n\t${joined(bits, '|', '0U')}\n`
})

function header(): string {
  return `/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Written by tools/gen-protocols.ts from src/signals/traces/protocols/index.ts: change the list and run it again. */
#pragma once
${recognised
  .map(({ name }) => `#include "../protocol/${name}.h"\n`)
  .toSorted()
  .join('')}
/* Names as src/signals/traces/protocols has them, in the order of its list. */
enum svc_protocol {
\tsvc_protocol_none,
${protocols.map(({ name }) => `\tsvc_protocol_${name},\n`).join('')}\tsvc_protocol_count,
};

/* Those that are recognised by their first bytes, the surest signs first. */
#define EACH_BY_SIGN(DO) \\
${recognised.map(({ name }) => `\tDO(${name})`).join(' \\\n')}

/* The same as bits, by their confidence. */
${byConfidence.join('')}
/* Those of which a turn of each side can be counted as an exchange. */
#define IS_COUNTED(protocol) \\
\t${joined(
    counted.map(({ name }) => `(protocol) == svc_protocol_${name}`),
    '||',
    'false',
  )}
`
}

writeGenerated('tools/gen-protocols.ts', [{ file: 'bpf/include/gen/protocols.h', text: header }])
