// Ends what a runner of tests or benchmarks started when the runner itself was killed. Argument: how the variable begins
// that all of it has in its environment. Standard input is a pipe from the runner, which ends with it.
import { endSession } from './sessions.ts'

const variable = process.argv[2]!
process.stdin.on('end', () => endSession({ variable })).resume()
