import { assignedSecrets, schemeTokens } from './assigned-secrets.ts'
import { creditCard } from './credit-card.ts'
import type { Detector } from './detector.ts'
import { email } from './email.ts'
import { iban } from './iban.ts'
import { ipv4, ipv6 } from './ip-address.ts'
import { jwt } from './jwt.ts'
import { phone } from './phone.ts'
import { privateKey } from './private-key.ts'
import { ssn } from './ssn.ts'
import { urlCredentials } from './url-credentials.ts'
import { vendorKeys } from './vendor-keys.ts'

/** All detectors. */
export const detectors: readonly Detector[] = [
  privateKey,
  urlCredentials,
  jwt,
  vendorKeys,
  schemeTokens,
  assignedSecrets,
  email,
  creditCard,
  iban,
  ssn,
  phone,
  ipv6,
  ipv4,
]
