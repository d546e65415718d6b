// Kills what a runner of tests or benchmarks started if the runner itself was killed. Argument: prefix of the
// environment variable that identifies all of it. Standard input is a pipe from the runner, which ends with it.
import { endSession } from './sessions.ts'

const variable = process.argv[2]!
process.stdin.on('end', () => endSession({ variable })).resume()
