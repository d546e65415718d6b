// Writes src/kernel/gen/<object>.ts from the BTF of dist/<object>.bpf.o, so that layouts are defined once, in bpf/.
//   struct svc_record { u64 start_ns; u8 comm[16]; }  →  svcRecord = { size, startNs, comm, commSize (of arrays) }
//   enum svc_counter { svc_counter_lost, … }          →  svcCounter = ['lost', …], or an object where numbers skip
//   global variables                                  →  rodata, data, bss = { size, <variable>, … }
// Shared definitions are written once: a module re-exports equal names of an earlier one by `export { … } from`. Types
// count if their name starts with svc_. A last value …_count or …_max is the number of values, and left out.
// --check compares instead, and exits 1 naming the files that are stale.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type BtfEnum, type BtfField, readBtf } from '../src/kernel/btf.ts'

const check = process.argv.includes('--check')
const from = 'dist'
const to = 'src/kernel/gen'
/** Variables with a map of their own in the build for older kernels. */
const ownMaps = new Set(['.bss.rows'])

const camel = (name: string) =>
  name
    .toLowerCase()
    .replace(/^[._]+|_+$/g, '')
    .replace(/[._]+(\w)/g, (_, letter: string) => letter.toUpperCase())

function layout(title: string, name: string, size: number, fields: readonly BtfField[]): string {
  const entries = new Map([['size', size]])
  const add = (key: string, value: number, field: string) => {
    if (entries.has(key))
      throw new Error(`${title}: '${field}' and another name both become '${key}': rename one`)
    entries.set(key, value)
  }
  for (const field of fields) {
    if (field.isBitField)
      throw new Error(`${title}: '${field.name}' is a bit field, which has no offset in bytes`)
    add(camel(field.name), field.offset, field.name)
    if (field.isArray) add(`${camel(field.name)}Size`, field.size, field.name)
  }
  const lines = [...entries].map(([key, value]) => `  ${key}: ${value},`)
  return `/** ${title}: offsets in bytes. */\nexport const ${name} = {\n${lines.join('\n')}\n} as const\n`
}

function table({ name, values }: BtfEnum): string {
  const prefix = prefixOf(
    name,
    values.map(value => value.name),
  )
  const short = values.map(({ name, value }) => ({ name: name.slice(prefix.length).toLowerCase(), value }))
  if (/^(count|max)$/.test(short.at(-1)?.name ?? '')) short.pop()
  const title = `/** enum ${name}. */\nexport const ${camel(name)} = `
  return short.every(({ value }, i) => value === i)
    ? `${title}[\n${short.map(({ name }) => `  '${name}',\n`).join('')}] as const\n`
    : `${title}{\n${short.map(({ name, value }) => `  ${name}: ${value},\n`).join('')}} as const\n`
}

/** The common prefix of an enumeration's names: its own name, otherwise whole words. */
function prefixOf(type: string, names: readonly string[]): string {
  const own = `${type}_`
  if (names.every(name => name.toLowerCase().startsWith(own))) return own
  let prefix = names.length > 1 ? names[0]!.replace(/[^_]*$/, '') : ''
  while (!names.every(name => name.startsWith(prefix))) prefix = prefix.replace(/[^_]*_$/, '')
  return prefix
}

/** Module of each definition, by its text. */
const written = new Map<string, string>()

function moduleOf(object: string): string {
  const { structs, enums, sections } = readBtf(readFileSync(`${from}/${object}.bpf.o`))
  const definitions: { readonly name: string; readonly text: string }[] = []
  for (const { name, size, fields } of structs)
    if (name.startsWith('svc_'))
      definitions.push({ name: camel(name), text: layout(`struct ${name}`, camel(name), size, fields) })
  for (const item of enums)
    if (item.name.startsWith('svc_')) definitions.push({ name: camel(item.name), text: table(item) })
  for (const { name, size, fields } of sections)
    definitions.push({ name: camel(name), text: layout(`Section ${name}`, camel(name), size, fields) })
  const own: string[] = []
  const shared = new Map<string, string[]>()
  for (const { name, text } of definitions) {
    const module = written.get(text)
    if (module === undefined) {
      written.set(text, object)
      own.push(text)
    } else shared.set(module, [...(shared.get(module) ?? []), name])
  }
  const exports = [...shared].map(
    ([module, names]) => `export { ${names.sort().join(', ')} } from './${module}.ts'\n`,
  )
  const head = `// Written by tools/gen-bpf.ts from ${object}.bpf.o: change bpf/ and run it again.\n`
  return [head, ...(exports.length > 0 ? [exports.join('')] : []), ...own].join('\n')
}

/** The layouts of both builds of an object must be equal: one reader reads both. */
function checkOldBuild(file: string): void {
  const [newer, older] = [from, `${from}/old`].map(folder => {
    const { structs, enums, sections } = readBtf(readFileSync(`${folder}/${file}`))
    const fields = [...structs.filter(({ name }) => name.startsWith('svc_')), ...sections].flatMap(of =>
      of.fields.map(({ name, ...place }) => [`${of.name}.${name}`, JSON.stringify(place)] as const),
    )
    const values = enums.filter(({ name }) => name.startsWith('svc_'))
    return new Map([...fields, ...values.map(({ name, values }) => [name, JSON.stringify(values)] as const)])
  })
  for (const [name, place] of newer!)
    if (older!.get(name) !== place && !ownMaps.has(name))
      throw new Error(`'${name}' has another layout in ${from}/old/${file}`)
}

function fail(message: string): never {
  console.error(`gen-bpf: ${message}`)
  process.exit(1)
}

const objects = existsSync(from) ? readdirSync(from).filter(file => file.endsWith('.bpf.o')) : []
if (objects.length === 0) fail(`cannot find ${from}/*.bpf.o: run tools/setup first`)
const want = new Map<string, string>()
for (const object of objects.map(file => file.slice(0, -'.bpf.o'.length)).sort()) {
  const file = `${object}.bpf.o`
  try {
    want.set(`${object}.ts`, moduleOf(object))
    if (existsSync(`${from}/old/${file}`)) checkOldBuild(file)
  } catch (error) {
    fail(`cannot lay out ${from}/${file}: ${error instanceof Error ? error.message : error}`)
  }
}
mkdirSync(to, { recursive: true })
const stale = readdirSync(to).filter(file => file.endsWith('.ts') && !want.has(file))
for (const [file, text] of want) {
  if (!existsSync(`${to}/${file}`) || readFileSync(`${to}/${file}`, 'utf8') !== text) stale.push(file)
}
if (check) {
  if (stale.length > 0)
    fail(`stale: ${stale.map(file => `${to}/${file}`).join(', ')} (run node tools/gen-bpf.ts)`)
} else {
  for (const file of stale) {
    const text = want.get(file)
    if (text === undefined) rmSync(`${to}/${file}`)
    else writeFileSync(`${to}/${file}`, text)
    console.log(`gen-bpf: ${text === undefined ? 'removed' : 'wrote'} ${to}/${file}`)
  }
}
