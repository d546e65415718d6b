// Preloaded by the runtime in all processes of a test file that owns neither ports nor the host (owns.ts): prevents the
// native addon from loading programs into the kernel, and reports attempts to the runner.
const { appendFileSync } = require('node:fs')

const open = process.dlopen
process.dlopen = function dlopen(module, filename, ...rest) {
  const result = open.call(this, module, filename, ...rest)
  if (filename.endsWith('/svc.node'))
    module.exports.objectLoad = () => {
      const fault =
        'loads programs into the kernel and owns neither ports nor host: add "// owns: ports" or "// owns: host"'
      appendFileSync(process.env.TEST_FAULTS, `${process.env.TEST_FILE}\t${fault}\n`)
      throw new Error(`this test file ${fault}`)
    }
  return result
}
