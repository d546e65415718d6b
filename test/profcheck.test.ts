import assert from 'node:assert/strict'
import { test } from 'node:test'
import { profileFaults } from './helpers/profcheck.ts'

const id = (bytes: number, filled: number) => Buffer.alloc(bytes, filled).toString('base64')

/** A request that follows every rule and has something of everything. */
function sound() {
  const samples: Record<string, unknown>[] = [
    { stackIndex: 1, attributeIndices: [1], linkIndex: 1, values: ['5'] },
    { stackIndex: 2, values: ['7'] },
  ]
  const profile: Record<string, unknown> = {
    sampleType: { typeStrindex: 1, unitStrindex: 2 },
    samples,
    timeUnixNano: '1000',
    durationNano: '100',
    periodType: { typeStrindex: 1, unitStrindex: 2 },
    period: '10',
  }
  return {
    resourceProfiles: [{ scopeProfiles: [{ profiles: [profile] }] }],
    dictionary: {
      mappingTable: [
        {},
        { memoryStart: '1', memoryLimit: '9', filenameStrindex: 6, attributeIndices: [2] },
      ] as Record<string, unknown>[],
      locationTable: [
        {},
        { mappingIndex: 1, address: '4', lines: [{ functionIndex: 1, line: '3' }], attributeIndices: [3] },
        { lines: [{ functionIndex: 1 }] },
      ] as Record<string, unknown>[],
      functionTable: [{}, { nameStrindex: 3 }] as Record<string, unknown>[],
      linkTable: [
        { traceId: id(16, 0), spanId: id(8, 0) },
        { traceId: id(16, 1), spanId: id(8, 2) },
      ],
      stringTable: ['', 'cpu', 'nanoseconds', 'main', 'thread.id', '', 'shop', 'kind'],
      attributeTable: [
        {},
        { keyStrindex: 4, value: { intValue: '7' } },
        { keyStrindex: 5, value: { stringValue: 'ab' } },
        { keyStrindex: 7, value: { stringValue: 'native' } },
      ] as Record<string, unknown>[],
      stackTable: [{}, { locationIndices: [1, 2] }, { locationIndices: [2] }] as Record<string, unknown>[],
    },
  }
}

type Sound = ReturnType<typeof sound>

function made(break_: (request: Sound) => void): Sound {
  const request = sound()
  request.dictionary.stringTable[5] = 'process.executable.build_id.htlhash'
  break_(request)
  return request
}

test('a request that follows the rules has no faults', () => {
  assert.deepEqual(profileFaults(made(() => {})), [])
})

test('each rule that a request breaks is told with its place', () => {
  const check = (want: RegExp, break_: (request: Sound) => void) => {
    const faults = profileFaults(made(break_))
    assert.ok(
      faults.some(fault => want.test(fault)),
      `${want} is not among ${JSON.stringify(faults)}`,
    )
  }
  type Tables = Sound['dictionary']
  const table = (want: RegExp, break_: (tables: Tables) => void) =>
    check(want, ({ dictionary }) => break_(dictionary))
  const profileOf = ({ resourceProfiles }: Sound) => resourceProfiles[0]!.scopeProfiles[0]!.profiles[0]!
  const profile = (want: RegExp, over: Record<string, unknown>) =>
    check(want, request => Object.assign(profileOf(request), over))
  const sample = (want: RegExp, over: Record<string, unknown>) =>
    check(want, request => Object.assign((profileOf(request).samples as object[])[0]!, over))

  check(/^the request: no resourceProfiles$/, request => request.resourceProfiles.pop())
  check(/^resourceProfiles\[0\]: no scopeProfiles$/, ({ resourceProfiles }) =>
    resourceProfiles[0]!.scopeProfiles.pop(),
  )
  check(/^resourceProfiles\[0\]\.scopeProfiles\[0\]: no profiles$/, ({ resourceProfiles }) =>
    resourceProfiles[0]!.scopeProfiles[0]!.profiles.pop(),
  )

  for (const name of Object.keys(sound().dictionary) as (keyof Tables)[]) {
    table(new RegExp(`^${name}\\[0\\]: not the zero value$`), tables => {
      tables[name].shift()
    })
    table(new RegExp(`^${name}\\[0\\]: not the zero value$`), tables => {
      tables[name] = []
    })
    table(new RegExp(`^${name}\\[\\d\\]: the same as \\[\\d\\]$`), tables => {
      tables[name].push(structuredClone(tables[name].at(-1)) as never)
    })
    table(new RegExp(`^${name}\\[\\d\\]: nothing refers to it$`), tables => {
      tables[name].push(structuredClone(tables[name].at(-1)) as never)
    })
  }
  table(/^linkTable\[0\]: not the zero value$/, ({ linkTable }) => {
    linkTable[0] = { traceId: '', spanId: '' }
  })
  table(/^mappingTable\[2\]: the same as \[1\]$/, ({ mappingTable }) => {
    mappingTable[1]!.attributeIndices = [2, 1]
    mappingTable.push({ ...mappingTable[1], attributeIndices: [1, 2] })
  })

  sample(/samples\[0\]\.stackIndex: 3 is outside of the 3 of stackTable/, { stackIndex: 3 })
  sample(/samples\[0\]\.linkIndex: -1 is outside/, { linkIndex: -1 })
  sample(/samples\[0\]\.attributeIndices: 9 is outside/, { attributeIndices: [9] })
  profile(/profiles\[0\]\.typeStrindex: 99 is outside/, { sampleType: { typeStrindex: 99 } })
  table(/^stackTable\[1\]\.locationIndices: 7 is outside/, ({ stackTable }) => {
    stackTable[1]!.locationIndices = [1, 2, 7]
  })
  table(/^locationTable\[1\]\.mappingIndex: 2 is outside/, ({ locationTable }) => {
    locationTable[1]!.mappingIndex = 2
  })
  table(/^locationTable\[2\]\.functionIndex: 2 is outside/, ({ locationTable }) => {
    locationTable[2]!.lines = [{ functionIndex: 2 }]
  })
  table(/^functionTable\[1\]\.systemNameStrindex: 8 is outside/, ({ functionTable }) => {
    functionTable[1]!.systemNameStrindex = 8
  })
  table(/^attributeTable\[4\]\.unitStrindex: 8 is outside/, ({ attributeTable }) => {
    attributeTable.push({ keyStrindex: 4, unitStrindex: 8 })
  })

  sample(/samples\[0\]: the attribute thread\.id twice$/, { attributeIndices: [1, 1] })
  table(/^locationTable\[1\]: the attribute kind twice$/, ({ locationTable }) => {
    locationTable[1]!.attributeIndices = [3, 3]
  })
  table(/^mappingTable\[1\]: the attribute .*htlhash twice$/, ({ mappingTable }) => {
    mappingTable[1]!.attributeIndices = [2, 2]
  })

  table(/^mappingTable\[1\]: its limit is not above its start$/, ({ mappingTable }) => {
    mappingTable[1]!.memoryStart = '9'
  })
  table(/^mappingTable\[1\]: no identifier of its file$/, ({ mappingTable }) => {
    mappingTable[1]!.attributeIndices = [1]
  })
  table(/^functionTable\[1\]: a function without any name$/, ({ functionTable }) => {
    functionTable[1] = { startLine: '1' }
  })
  table(/^functionTable\[1\]: a negative line$/, ({ functionTable }) => {
    functionTable[1]!.startLine = '-1'
  })
  table(/^locationTable\[2\]: a negative line$/, ({ locationTable }) => {
    locationTable[2]!.lines = [{ functionIndex: 1, column: '-1' }]
  })
  table(/^linkTable\[1\]: identifiers of other lengths/, ({ linkTable }) => {
    linkTable[1]!.spanId = id(7, 1)
  })

  profile(/no type of samples$/, { sampleType: {} })
  profile(/an identifier of another length than 16$/, { profileId: id(8, 1) })
  profile(/an original payload without its format/, { originalPayload: id(8, 1) })
  sample(/samples\[0\]: neither values nor timestamps$/, { values: undefined })
  sample(/samples\[0\]: several values without timestamps$/, { values: ['1', '2'] })
  sample(/samples of several shapes: timestamps, values$/, { values: [], timestampsUnixNano: ['1000'] })
  sample(/samples of several shapes: values with timestamps, values$/, { timestampsUnixNano: ['1000'] })
  sample(/not as many values as timestamps$/, { timestampsUnixNano: ['1000', '1001'] })
  sample(/a timestamp outside the window/, { timestampsUnixNano: ['1100'] })
  sample(/a timestamp outside the window/, { timestampsUnixNano: ['999'] })
})
