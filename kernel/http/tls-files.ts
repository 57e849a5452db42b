/** Certificate files of the listener, checked here because the server library does not report errors. */

import { hash, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TlsConfig } from '../config/tls-config.ts'
import { BootError } from '../errors/boot-error.ts'
import { messageOf } from '../errors/message-of.ts'

/** Loaded by gateways that use it: 3 MB. */
const openTls = () => process.getBuiltinModule('node:tls')

export class TlsFileError extends BootError {
  /** Dotted path of the setting. */
  readonly setting: string

  constructor(setting: string, problem: string, cause?: unknown) {
    super(`${setting} ${problem}`, cause)
    this.setting = setting
  }
}

/** TLS options of the server library. */
export interface TlsFiles {
  readonly key_file_name: string
  readonly cert_file_name: string
  readonly passphrase?: string
  readonly ca_file_name?: string
}

/** State of the certificate files. */
export interface CheckedTlsFiles {
  /** Changes with the content of the files. */
  readonly digest: string
  /** End of validity of the first certificate in a file, milliseconds since the epoch, by setting. */
  readonly expiresAtMs: ReadonlyMap<string, number>
}

/** @throws TlsFileError naming the setting whose file cannot be used */
export function checkTlsFiles({
  certFile,
  keyFile,
  keyPassphrase,
  clientCaFile,
}: TlsConfig): CheckedTlsFiles {
  const cert = read('kernel.tls.certFile', certFile)
  const key = read('kernel.tls.keyFile', keyFile)
  const ca = clientCaFile === undefined ? '' : read('kernel.tls.clientCaFile', clientCaFile)
  try {
    openTls().createSecureContext({ cert, key, passphrase: keyPassphrase, ...(ca !== '' && { ca }) })
  } catch (cause) {
    const reason = messageOf(cause)
    throw new TlsFileError('kernel.tls', `has a certificate and a key that cannot be used: ${reason}`, cause)
  }
  const expiresAtMs = new Map<string, number>()
  for (const [setting, pem] of [
    ['kernel.tls.certFile', cert],
    ['kernel.tls.clientCaFile', ca],
  ])
    if (pem !== '') expiresAtMs.set(setting, expiryOf(setting, pem))
  return { digest: hash('sha256', `${cert}\0${key}\0${ca}`), expiresAtMs }
}

function expiryOf(setting: string, pem: string): number {
  try {
    return new X509Certificate(pem).validToDate.getTime()
  } catch (cause) {
    throw new TlsFileError(setting, 'must begin with a PEM certificate', cause)
  }
}

export function toTlsFiles({ certFile, keyFile, keyPassphrase, clientCaFile }: TlsConfig): TlsFiles {
  return {
    key_file_name: keyFile,
    cert_file_name: certFile,
    ...(keyPassphrase !== undefined && { passphrase: keyPassphrase }),
    ...(clientCaFile !== undefined && { ca_file_name: clientCaFile }),
  }
}

/** @returns the certificates in the file @throws TlsFileError */
export function checkAuthorities(caFile: string): string[] {
  const certificates = certificatesIn(read('kernel.caFile', caFile))
  if (certificates.length === 0)
    throw new TlsFileError('kernel.caFile', `must contain PEM certificates, ${caFile} has none`)
  return certificates
}

/** Adds authorities to those that this thread trusts. @throws TlsFileError */
export function trustAuthorities(caFile: string): void {
  const certificates = checkAuthorities(caFile)
  const { getCACertificates, setDefaultCACertificates } = openTls()
  // Since Node 22.19.
  if (typeof setDefaultCACertificates !== 'function')
    throw new TlsFileError('kernel.caFile', 'requires Node 22.19; set NODE_EXTRA_CA_CERTS with an older one')
  const known = getCACertificates('default')
  const added = certificates.filter((one) => !known.includes(one))
  if (added.length > 0) setDefaultCACertificates([...known, ...added])
}

const BEGIN = '-----BEGIN CERTIFICATE-----'
const END = '-----END CERTIFICATE-----'

function certificatesIn(pem: string): string[] {
  return pem
    .split(BEGIN)
    .slice(1)
    .map((part) => `${BEGIN}${part.slice(0, part.indexOf(END))}${END}\n`)
}

function read(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = messageOf(cause)
    throw new TlsFileError(setting, `cannot be read: ${reason}`, cause)
  }
}
