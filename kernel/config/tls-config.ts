/** TLS settings of the API listener. */
import type { Static } from 'typebox'
import { Type } from '../contracts/type.ts'

export const TlsConfigSchema = Type.Object(
  {
    certFile: Type.String({
      minLength: 1,
      reads: 'start',
      description: 'PEM file with the certificate and its intermediates. Read again on reload.',
    }),
    keyFile: Type.String({
      minLength: 1,
      reads: 'start',
      description: 'PEM file with the private key. Read again on reload.',
    }),
    keyPassphrase: Type.Optional(
      Type.String({ secret: true, description: 'Passphrase of an encrypted private key.' }),
    ),
    clientCaFile: Type.Optional(
      Type.String({
        minLength: 1,
        reads: 'start',
        description:
          'PEM file with the certificate authorities of clients (mutual TLS): a client without a certificate of one of them is refused in the handshake. Read again on reload.',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'Enables TLS on the API port; default: plain HTTP. The metrics port stays plain, and plugins.health.probe opens a plain port for probes.',
  },
)

export type TlsConfig = Static<typeof TlsConfigSchema>
