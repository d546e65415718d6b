import { Scanner } from '../../../foundation/lib/scanner.ts'
import { collector, counter } from './collector.ts'

/** Fields (Linux, Documentation/networking/xfrm_proc.rst) and their causes. */
const fields = [
  ['XfrmInError', 'in_error', 'incoming, with an error that no other counter has'],
  ['XfrmInBufferError', 'in_buffer_error', 'incoming, for want of a buffer'],
  ['XfrmInHdrError', 'in_hdr_error', 'incoming, with a broken header'],
  ['XfrmInNoStates', 'in_no_states', 'incoming, without a security association for them'],
  [
    'XfrmInStateProtoError',
    'in_state_proto_error',
    'incoming, with an error of the protocol, as by a wrong key',
  ],
  ['XfrmInStateModeError', 'in_state_mode_error', 'incoming, with an error of the mode'],
  ['XfrmInStateSeqError', 'in_state_seq_error', 'incoming, with a sequence number outside of the window'],
  ['XfrmInStateExpired', 'in_state_expired', 'incoming, after the association had expired'],
  ['XfrmInStateMismatch', 'in_state_mismatch', 'incoming, with options other than the association has'],
  ['XfrmInStateInvalid', 'in_state_invalid', 'incoming, by an association that is not valid'],
  ['XfrmInTmplMismatch', 'in_tmpl_mismatch', 'incoming, by associations that the policy does not ask for'],
  ['XfrmInNoPols', 'in_no_pols', 'incoming, without a policy for them'],
  ['XfrmInPolBlock', 'in_pol_block', 'incoming, that a policy discards'],
  ['XfrmInPolError', 'in_pol_error', 'incoming, with an error of the policy'],
  ['XfrmOutError', 'out_error', 'outgoing, with an error that no other counter has'],
  ['XfrmOutBundleGenError', 'out_bundle_gen_error', 'outgoing, as no bundle could be made'],
  ['XfrmOutBundleCheckError', 'out_bundle_check_error', 'outgoing, as the bundle was not right'],
  ['XfrmOutNoStates', 'out_no_states', 'outgoing, without a security association for them'],
  ['XfrmOutStateProtoError', 'out_state_proto_error', 'outgoing, with an error of the protocol'],
  ['XfrmOutStateModeError', 'out_state_mode_error', 'outgoing, with an error of the mode'],
  ['XfrmOutStateSeqError', 'out_state_seq_error', 'outgoing, as sequence numbers had run out'],
  ['XfrmOutStateExpired', 'out_state_expired', 'outgoing, after the association had expired'],
  ['XfrmOutPolBlock', 'out_pol_block', 'outgoing, that a policy discards'],
  ['XfrmOutPolDead', 'out_pol_dead', 'outgoing, by a policy that is no more'],
  ['XfrmOutPolError', 'out_pol_error', 'outgoing, with an error of the policy'],
  ['XfrmFwdHdrError', 'fwd_hdr_error', 'forwarded, where that is not allowed'],
  ['XfrmOutStateInvalid', 'out_state_invalid', 'outgoing, by an association that is not valid'],
  ['XfrmAcquireError', 'acquire_error', 'outgoing, before the association was complete'],
] as const

const metrics = fields.map(([, name, what]) =>
  counter(`xfrm_${name}_packets_total`, `Packets that IPsec dropped: ${what}.`),
)
const places = new Map<string, number>(fields.map(([field], i) => [field, i]))

/** Packets that IPsec dropped, from /proc/net/xfrm_stat. */
export const xfrm = collector({
  name: 'xfrm',
  summary: 'Packets that IPsec dropped, by cause',
  source: '/proc/net/xfrm_stat',
  enabledByDefault: false,
  metrics,
  start: (_options, { host }) => ({
    collect(readings) {
      const values = parseXfrmStat(host.proc.bytes('net/xfrm_stat'))
      metrics.forEach((family, i) => {
        readings.set(family, values[i]!)
      })
    },
  }),
})

/** Values in the order of `fields`; 0 for unsupported ones. */
function parseXfrmStat(bytes: Buffer): readonly number[] {
  const values = fields.map(() => 0)
  const scan = new Scanner(bytes)
  let lines = 0
  for (; scan.line(); lines++) {
    const place = places.get(scan.text())
    const value = scan.number()
    if (Number.isNaN(value) || !scan.done)
      throw new Error(`cannot read /proc/net/xfrm_stat: line ${lines + 1} is not a name and a number`)
    if (place !== undefined) values[place] = value
  }
  if (lines === 0) throw new Error('cannot read /proc/net/xfrm_stat: empty file')
  return values
}
