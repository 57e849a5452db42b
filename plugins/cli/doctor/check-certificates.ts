/** Checks the certificate files of the API listener. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TlsConfig } from '../../../kernel/config/tls-config.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import { checkTlsFiles } from '../../../kernel/http/tls-files.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

const DAY_MS = 86_400_000
/** Certificates that expire within this time are reported. */
const RENEWAL_DAYS = 30

/** @param nowMs time of the check, milliseconds since the epoch */
export function checkCertificates(tls: TlsConfig, nowMs = Date.now()): Finding[] {
  try {
    checkTlsFiles(tls)
    const certificate = new X509Certificate(readFileSync(tls.certFile))
    const key = createPrivateKey({ key: readFileSync(tls.keyFile), passphrase: tls.keyPassphrase })
    if (!certificate.checkPrivateKey(key)) {
      const text = `kernel.tls.keyFile ${tls.keyFile} is not the key of ${tls.certFile}`
      return [fail('certificate', text, 'configure the key that the certificate was issued for')]
    }
    const findings = [checkValidity('kernel.tls.certFile', tls.certFile, certificate, nowMs)]
    if (tls.clientCaFile !== undefined) {
      const authority = new X509Certificate(readFileSync(tls.clientCaFile))
      findings.push(checkValidity('kernel.tls.clientCaFile', tls.clientCaFile, authority, nowMs))
    }
    return findings
  } catch (error) {
    return [fail('certificate', messageOf(error), 'correct the files of kernel.tls, then reload the gateway')]
  }
}

function checkValidity(setting: string, file: string, certificate: X509Certificate, nowMs: number): Finding {
  const { validFromDate, validToDate } = certificate
  const renew = 'renew it, then run: weir config apply (or send SIGHUP)'
  const [from, to] = [validFromDate.toISOString().slice(0, 10), validToDate.toISOString().slice(0, 10)]
  if (validToDate.getTime() <= nowMs) return fail('certificate', `${setting} ${file} expired on ${to}`, renew)
  if (validFromDate.getTime() > nowMs)
    return fail('certificate', `${setting} ${file} is not valid before ${from}`, 'check the clock')
  const days = Math.floor((validToDate.getTime() - nowMs) / DAY_MS)
  const text = `${setting} ${file} expires on ${to}, in ${days} days`
  return days <= RENEWAL_DAYS ? warn('certificate', text, renew) : ok('certificate', text)
}
