// What single tests need of the host and may lack: why they cannot run, for `skip`; false where they can.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { zstdAvailable } from '../../src/pipeline/exporters/compression.ts'

/** Acting as another user. */
export const withoutRoot: string | false =
  process.getuid?.() === 0 ? false : 'acting as another user needs root'

/** An address of this host that is not loopback, '' for none: a peer who asks from it is not of this host to a server. */
export const outerAddress: string =
  Object.values(networkInterfaces())
    .flat()
    .find(found => found && !found.internal && found.family === 'IPv4')?.address ?? ''
export const withoutOuterAddress: string | false =
  outerAddress === '' ? 'a remote peer needs an IPv4 address beside loopback' : false

/** The runtime of Debian 12. npm puts the project's own first in the PATH, so it is asked for by its place. */
export const systemNode = '/usr/bin/node'
const systemVersion = String(spawnSync(systemNode, ['--version']).stdout ?? '').trim()
export const withoutNode20: string | false = systemVersion.startsWith('v20.')
  ? false
  : `the oldest runtime needs Node.js 20 at ${systemNode}, and there is ${systemVersion || 'none'}`

/** File systems of other programs, mounted for a test. */
export const withoutBindfs: string | false =
  process.getuid?.() === 0 && existsSync('/dev/fuse') && spawnSync('bindfs', ['--version']).status === 0
    ? false
    : 'a file system that hangs needs root, /dev/fuse and bindfs'

/** perf_event_open(2) for one's own process (kernel, admin-guide/sysctl/kernel.rst; some distributions have 3 and 4). */
const paranoia = Number(readFileSync('/proc/sys/kernel/perf_event_paranoid', 'latin1'))
export const withoutPerfEvents: string | false =
  process.getuid?.() === 0 || paranoia <= 2
    ? false
    : `a performance event needs root or kernel.perf_event_paranoid of 2 at most, and it is ${paranoia}`

/** A kernel that knows of wireless networks answers, with or without a device. */
export const withWireless: string | false =
  existsSync('/sys/module/cfg80211') || existsSync('/sys/class/ieee80211')
    ? 'a kernel without wireless networks is needed, and this one has cfg80211'
    : false

/** The zoneinfo database. */
export const zoneDatabase = '/usr/share/zoneinfo'
export const withoutZoneDatabase: string | false = existsSync(`${zoneDatabase}/Europe/Berlin`)
  ? false
  : `the host's zones are read from ${zoneDatabase}, which is not there (tzdata)`

/** A file system on a block device: read-only at run time as a device's errors make it. */
export const withoutLoopMounts: string | false =
  process.getuid?.() === 0 && existsSync('/dev/loop-control') && spawnSync('mkfs.ext4', ['-V']).status === 0
    ? false
    : 'an ext4 of its own needs root, /dev/loop-control and mkfs.ext4'

export const withoutZstd: string | false = zstdAvailable
  ? false
  : 'this runtime has no zstd (Node.js 22.15 or newer)'

/** A terminal whose screen can be read. */
export const withoutTmux: string | false =
  spawnSync('tmux', ['-V']).status === 0 ? false : 'a screen is read by tmux, which is not installed'

/** A browser that draws the live page. */
export const chromium = '/usr/bin/chromium'
export const withoutChromium: string | false = existsSync(chromium)
  ? false
  : `the page is looked at in ${chromium}, which is not there (chromium)`
