/** The socket to a worker's address: TCP, or TLS where the URL says so. */
import { readFileSync } from 'node:fs'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

const DEFAULT_PORTS = { plain: 80, secure: 443 }

/** @throws TypeError when the URL cannot be read; what reading the authorities throws */
export function openSocket(url: string, caFile: string | null, onReady: () => void): Socket {
  const { protocol, hostname, port } = new URL(url)
  // Addresses of version 6 stand in brackets.
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  if (protocol !== 'grpcs:') return connectTcp({ host, port: Number(port || DEFAULT_PORTS.plain) }, onReady)
  const options = {
    host,
    port: Number(port || DEFAULT_PORTS.secure),
    ALPNProtocols: ['h2'],
    ...(isIP(host) === 0 && { servername: host }),
    ...(caFile !== null && { ca: readFileSync(caFile) }),
  }
  return connectTls(options, onReady)
}
