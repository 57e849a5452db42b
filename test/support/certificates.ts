/** Test certificates made by openssl: an authority and the certificates it issues. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  readonly certFile: string
  readonly keyFile: string
  readonly cert: Buffer
  readonly key: Buffer
}

/** An authority with its own folder; call `remove` after the test. */
export class TestAuthority {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-ca-'))
  readonly caFile = join(this.folder, 'ca.pem')
  readonly ca: Buffer
  #serial = 1

  constructor(name = 'Test authority') {
    this.#openssl(
      'req',
      '-x509',
      ...EC,
      '-nodes',
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      ...out('ca', this.folder),
    )
    this.ca = readFileSync(this.caFile)
  }

  /** Issues a certificate for servers and clients. @param days validity; @param hosts that it is for */
  issue(name: string, days = 2, hosts = 'DNS:localhost,IP:127.0.0.1'): Certificate {
    const [request, certFile] = [join(this.folder, `${name}.csr`), join(this.folder, `${name}.pem`)]
    const keyFile = join(this.folder, `${name}.key`)
    const extensions = join(this.folder, 'extensions')
    writeFileSync(extensions, `subjectAltName=${hosts}\n`)
    this.#openssl('req', '-new', ...EC, '-nodes', '-subj', `/CN=${name}`, '-keyout', keyFile, '-out', request)
    const signer = [
      '-CA',
      this.caFile,
      '-CAkey',
      join(this.folder, 'ca.key'),
      '-set_serial',
      String(++this.#serial),
    ]
    this.#openssl(
      'x509',
      '-req',
      '-in',
      request,
      ...signer,
      '-days',
      String(days),
      '-extfile',
      extensions,
      '-out',
      certFile,
    )
    return { certFile, keyFile, cert: readFileSync(certFile), key: readFileSync(keyFile) }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'ignore' })
  }
}

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
const out = (name: string, folder: string) => [
  '-keyout',
  join(folder, `${name}.key`),
  '-out',
  join(folder, `${name}.pem`),
]
