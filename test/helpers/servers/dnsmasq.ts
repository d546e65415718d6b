import { spawn } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { existsSync } from 'node:fs'
import { until } from '../program.ts'

const program = '/usr/sbin/dnsmasq'

/** Only root may listen at port 53. */
export const withoutDnsmasq: string | false =
  process.getuid?.() === 0 && existsSync(program) && existsSync('/usr/bin/dig')
    ? false
    : 'a name server at port 53 needs root, dnsmasq and dig (dnsmasq-base, bind9-dnsutils)'

export interface NameServer {
  /** It listens at port 53 of this one of loopback's addresses, which nothing else uses. */
  readonly address: string
  close(): Promise<void>
}

/**
 * Starts a name server. `web.test` has two addresses, `nope.test` does not exist, `big.test` has a text that only TCP
 * can carry to who asks without EDNS, and it refuses all else.
 */
export async function startDnsmasq(): Promise<NameServer> {
  const address = `127.77.${process.pid % 250}.1`
  const text = Array.from({ length: 6 }, (_, i) => `${i}`.repeat(200)).join(',')
  const options = [
    ...['--keep-in-foreground', '--bind-interfaces', '--no-resolv', '--no-hosts', '--no-ping', '--user=root'],
    ...['--conf-file=/dev/null', '--pid-file=', `--listen-address=${address}`],
    ...['--address=/web.test/10.1.2.3', '--address=/web.test/fd00::1', '--address=/nope.test/'],
    `--txt-record=big.test,${text}`,
  ]
  const child = spawn(program, options, { stdio: 'ignore' })
  const close = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = new Promise(resolve => child.once('close', resolve))
    child.kill('SIGKILL')
    await ended
  }
  const resolver = new Resolver({ timeout: 200, tries: 1 })
  resolver.setServers([address])
  try {
    await until('the name server answers', 20_000, async () =>
      resolver.resolve4('web.test').then(
        () => true,
        () => false,
      ),
    )
  } catch (error) {
    await close()
    throw error
  }
  return { address, close }
}
